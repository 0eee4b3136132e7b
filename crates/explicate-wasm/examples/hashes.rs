//! Prints the hashes of scenarios as this machine computes them, as JSON: what a browser's are compared with.
//!
//! Its arguments are the name of a list as `playground/test/list.json` has it, and the folder that its files are relative to.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use explicate_wasm::output::hash;
use explicate_wasm::session::{Files, Recipe};
use serde_json::{Value, json};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, list, folder] = arguments.as_slice() else {
        eprintln!("usage: hashes LIST.json FOLDER");
        return ExitCode::FAILURE;
    };
    match hashes(Path::new(list), Path::new(folder)) {
        Ok(hashes) => {
            println!("{hashes}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn hashes(list: &Path, folder: &Path) -> Result<Value, String> {
    let list: Value = serde_json::from_str(&read(list)?).map_err(|e| e.to_string())?;
    let mut all = BTreeMap::new();
    for case in list.as_array().ok_or("the list is an array")? {
        let name = case["name"].as_str().ok_or("a case has a name")?;
        let file = case["file"].as_str().ok_or("a case has a file")?;
        let mut files = Files::new();
        for beside in case["beside"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let stem = Path::new(beside).file_name().and_then(|n| n.to_str()).unwrap_or(beside);
            files.insert(stem.to_string(), read(&folder.join(beside))?);
        }
        let overrides: Vec<(String, String)> = case["set"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_string()))
            .collect();
        let changes = case.get("changes").map_or(String::new(), Value::to_string);
        let recipe = Recipe::new(&read(&folder.join(file))?, file, &files, &overrides, &changes);
        let tables = recipe.and_then(|recipe| recipe.tables()).map_err(|e| format!("{name}: {e}"))?;
        all.insert(name, hash(&tables));
    }
    Ok(json!(all))
}
