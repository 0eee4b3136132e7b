//! `playground-bindgen FILE.wasm FOLDER` writes the module and its JavaScript for browsers and Node into the folder.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, module, folder] = arguments.as_slice() else {
        eprintln!("usage: playground-bindgen FILE.wasm FOLDER");
        return ExitCode::FAILURE;
    };
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).typescript(true).out_name("explicate").omit_default_module_path(false);
    let made = bindgen.web(true).and_then(|bindgen| bindgen.generate(folder));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
