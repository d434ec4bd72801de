//! Finds the cache suite, and runs it with node. The test installs the npm package in the target
//! directory. `FOXY_CACHE_TESTS=/path/to/cache-tests cargo test -p foxy --test conformance` runs
//! another version, in this folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const PACKAGE: &str = include_str!("package.json");
const LOCK: &str = include_str!("package-lock.json");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/suite.mjs");

/// A version of the public suite `http-cache-tests`.
#[derive(Clone)]
pub struct Cut {
    pub folder: PathBuf,
    /// Name of this version of the test suite in docs/conformance.md.
    pub name: &'static str,
}

/// Returns the version of `http-cache-tests` to run. If none can be found, prints that nothing was
/// checked. If the environment requires all checks, panics instead.
pub fn cut() -> Option<Cut> {
    static INSTALLED: LazyLock<Result<PathBuf, String>> = LazyLock::new(installed);
    if let Some(folder) = std::env::var_os("FOXY_CACHE_TESTS") {
        return Some(Cut { folder: folder.into(), name: "newest" });
    }
    match &*INSTALLED {
        Ok(folder) => Some(Cut { folder: folder.clone(), name: "npm" }),
        Err(reason) => {
            assert!(std::env::var_os("CI").is_none(), "the public suite was not run: {reason}");
            tell(&format!(
                "NOT RUN: the public suite of caching checks (docs/conformance.md): {reason}"
            ));
            None
        }
    }
}

/// Prints `text` on the terminal, even while the test harness captures output.
pub fn tell(text: &str) {
    std::io::stderr()
        .write_all(format!("\n{text}\n").as_bytes())
        .expect("standard error is writable");
}

/// Returns the folder of the npm package. Installs the package if it is missing.
fn installed() -> Result<PathBuf, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http-cache-tests");
    let package = place.join("node_modules/http-cache-tests");
    works("node")?;
    if std::fs::read_to_string(place.join("installed")).is_ok_and(|lock| lock == LOCK) {
        return Ok(package);
    }
    works("npm")?;
    std::fs::create_dir_all(&place).expect("a folder under the target directory");
    std::fs::write(place.join("package.json"), PACKAGE).expect("writable");
    std::fs::write(place.join("package-lock.json"), LOCK).expect("writable");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&place);
    let output = npm.output().map_err(|error| format!("npm did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "npm could not install it: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    std::fs::write(place.join("installed"), LOCK).expect("writable");
    Ok(package)
}

fn works(program: &str) -> Result<(), String> {
    let works =
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if works {
        Ok(())
    } else {
        Err(format!("{program} is not on the PATH; install Node.js 18 or later"))
    }
}

impl Cut {
    /// Prepares node with the suite's script. `action` is to serve, to run or to print the suite.
    pub fn node(&self, action: &str) -> Command {
        let mut command = Command::new("node");
        command.args(["--no-warnings", SCRIPT, action]).arg(&self.folder);
        command
    }

    /// Runs the script, and returns its standard output.
    pub fn output(&self, action: &str, more: &[&str]) -> Vec<u8> {
        let output = self.node(action).args(more).output().expect("node ran before");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the suite did not run: {errors}");
        output.stdout
    }
}
