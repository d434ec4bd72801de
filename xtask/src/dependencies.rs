//! Checks that foxy's crates depend on each other only as the table `ALLOWED` permits. `cargo
//! metadata` gives the real dependencies.

use crate::workspace;
use serde_json::Value;

/// Each of foxy's crates, with the crates of foxy that it may depend on. A new pair is a design
/// decision: see ARCHITECTURE.md.
const ALLOWED: [(&str, &[&str]); 19] = [
    ("foxy-base", &[]),
    ("foxy-http", &[]),
    ("foxy-device", &["foxy-base"]),
    ("foxy-store", &["foxy-device", "foxy-base"]),
    ("foxy-schemes", &["foxy-store", "foxy-device", "foxy-base"]),
    ("foxy-whatif", &["foxy-schemes"]),
    ("foxy-rules", &["foxy-base"]),
    ("foxy-authority", &["foxy-base"]),
    ("foxy-proxy", &["foxy-authority", "foxy-rules", "foxy-store", "foxy-http", "foxy-base"]),
    ("foxy-fleet", &["foxy-proxy", "foxy-http", "foxy-base"]),
    ("foxy-workload", &["foxy-base"]),
    ("foxy-report", &["foxy-base"]),
    ("foxy-log", &["foxy-base"]),
    (
        "foxy-lab",
        &[
            "foxy-http",
            "foxy-workload",
            "foxy-report",
            "foxy-schemes",
            "foxy-store",
            "foxy-device",
            "foxy-base",
        ],
    ),
    ("foxy-cli", &["foxy-authority", "foxy-device", "foxy-base"]),
    (
        "foxy-lab-cli",
        &[
            "foxy-lab",
            "foxy-workload",
            "foxy-report",
            "foxy-store",
            "foxy-schemes",
            "foxy-device",
            "foxy-http",
            "foxy-authority",
            "foxy-base",
            "foxy-cli",
        ],
    ),
    ("foxy-testkit", &["foxy-store", "foxy-base"]),
    ("foxy-torture", &["*"]),
    ("foxy", &["*"]),
];

/// Crates for programs and tests. No crate may depend on them outside its tests.
const NEVER_NORMAL: [&str; 3] = ["foxy", "foxy-testkit", "foxy-torture"];

/// Crates that `cargo package` must accept, so that other programs can embed the store.
const PACKAGED: [&str; 3] = ["foxy-base", "foxy-device", "foxy-store"];

/// Checks every normal dependency between foxy's crates against the table `ALLOWED`. Leaves out
/// dev-dependencies, which only tests use.
pub fn check() -> Result<String, String> {
    let metadata = workspace::metadata()?;
    let edges = edges(&metadata);
    let mut wrong: Vec<String> = edges.iter().filter_map(|(from, to)| refuse(from, to)).collect();
    wrong.extend(unpackaged(&metadata));
    if wrong.is_empty() {
        Ok(format!("{} edges, all as designed", edges.len()))
    } else {
        Err(wrong.join("\n"))
    }
}

fn refuse(from: &str, to: &str) -> Option<String> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == from) else {
        return Some(format!(
            "{from}: a crate the table in xtask/src/dependencies.rs does not know; add it there"
        ));
    };
    let is_library = !NEVER_NORMAL.contains(&to);
    let fine = allowed.contains(&to) || (allowed.contains(&"*") && is_library);
    (!fine).then(|| format!("{from} depends on {to}; it may know only [{}]", allowed.join(", ")))
}

fn edges(metadata: &Value) -> Vec<(String, String)> {
    let mut edges = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        if !package["source"].is_null() || name == "xtask" {
            continue;
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            let normal = dependency["kind"].is_null();
            if normal && (target == "foxy" || target.starts_with("foxy-")) {
                edges.push((name.to_owned(), target.to_owned()));
            }
        }
    }
    edges
}

/// Returns the reasons why `cargo package` would refuse the crates of [`PACKAGED`].
fn unpackaged(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        if !PACKAGED.contains(&name) {
            continue;
        }
        // `cargo metadata` shows `publish = false` as an empty list of registries.
        if !package["publish"].is_null() {
            wrong.push(format!("{name} is not to be published, but other programs embed it"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["kind"].is_null() && dependency["req"] == "*" {
                wrong.push(format!("{name} depends on {} of any version", dependency["name"]));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn edges_against_the_design_are_named() {
        assert_eq!(refuse("foxy-store", "foxy-device"), None);
        assert_eq!(refuse("foxy", "foxy-lab"), None);
        for (from, to) in [
            ("foxy-store", "foxy-http"),
            ("foxy-lab", "foxy-proxy"),
            ("foxy-proxy", "foxy-fleet"),
            ("foxy-lab-cli", "foxy-proxy"),
            ("foxy-cli", "foxy-lab"),
            ("foxy-torture", "foxy"),
            ("foxy-torture", "foxy-testkit"),
            ("foxy-lab", "foxy-testkit"),
            ("foxy-testkit", "foxy-proxy"),
            ("new", "foxy-base"),
        ] {
            assert!(refuse(from, to).is_some(), "{from} -> {to}");
        }
    }

    #[test]
    fn only_normal_dependencies_of_our_own_crates_are_edges() {
        let metadata = json!({"packages": [
            {"name": "foxy-store", "source": null, "dependencies": [
                {"name": "foxy-device", "kind": null}, {"name": "foxy-http", "kind": "dev"}, {"name": "bytes", "kind": null}]},
            {"name": "bytes", "source": "registry", "dependencies": [{"name": "foxy-base", "kind": null}]},
        ]});
        assert_eq!(edges(&metadata), [("foxy-store".to_owned(), "foxy-device".to_owned())]);
    }

    #[test]
    fn a_packaged_crate_is_published_and_names_versions() {
        let package = |publish: Value, requirement: &str| {
            let dependency = json!({"name": "foxy-base", "kind": null, "req": requirement});
            json!({"packages": [
                {"name": "foxy-store", "publish": publish, "dependencies": [dependency]},
                {"name": "foxy-lab", "publish": [], "dependencies": [dependency]},
            ]})
        };
        assert!(unpackaged(&package(Value::Null, "^0.1.0")).is_empty());
        assert_eq!(unpackaged(&package(json!([]), "*")).len(), 2);
    }
}
