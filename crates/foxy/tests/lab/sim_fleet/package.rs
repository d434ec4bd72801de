//! Tests the package `python/foxy_fleet`, with many workers and with one.

use super::{FLEET, measures};
use crate::support::commands::ended;
use crate::support::not_run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the Python with the packages that `cargo xtask tools` installs.
fn own_python() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_foxy"));
    program.ancestors().nth(2).expect("a target folder").join("tools/fleet/bin/python")
}

#[test]
fn many_workers_give_the_records_of_one_worker() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/foxy_fleet");
    let python = |arguments: &[&str]| {
        let mut python = Command::new(own_python());
        ended(python.args(arguments).env("PYTHONPATH", &source))
    };
    if !own_python().exists() || python(&["-c", "import dask, pyarrow"]).0 != Some(0) {
        return not_run("a simulated fleet on many workers", "Dask or pyarrow is missing");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let foxy = env!("CARGO_BIN_EXE_foxy");
    for parts in ["1", "4"] {
        let out = file(parts);
        let mut command =
            vec!["-m", "foxy_fleet", "--foxy", foxy, "--parts", parts, "--out", &out, "--"];
        command.extend(&FLEET[1..]);
        let (code, out, err) = python(&command);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    let compare = "import sys, pyarrow.parquet as p; one, many = map(p.read_table, sys.argv[1:]); \
                   assert one.equals(many); print(one.num_rows)";
    let (code, rows, err) = python(&["-c", compare, &file("1"), &file("4")]);
    assert_eq!(code, Some(0), "{err}");
    let expected = measures(folder.path(), &FLEET).len();
    assert_eq!(rows.trim(), expected.to_string());
}
