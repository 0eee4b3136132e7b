//! What the root of a user namespace cannot do, for it has no other user. Needs root, so `make linux` runs it.

use std::fs;
use std::process::Command;

use crate::common::{PROGRAM, run};

#[test]
#[ignore = "needs root: make linux"]
fn another_s_folder_is_refused_with_the_reason() {
    let folder = std::env::temp_dir().join(format!("exptest-{}-another", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    run(&format!("chown 65534 {}", folder.display()));
    let done = Command::new(PROGRAM)
        .args(["recv", "--bind", "127.0.0.1:0", "--state", std::env::temp_dir().to_str().unwrap(), "--to"])
        .arg(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(said.contains("It belongs to user 65534, and this is user 0"), "{said}");
    fs::remove_dir(folder).unwrap();
}
