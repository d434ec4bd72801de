//! Proves who may know whom: the one table of allowed edges between our crates, held against `cargo
//! metadata`.

use crate::workspace;
use serde_json::Value;

/// Each crate and the ones of ours that it may depend on. Adding an edge is a design decision: see
/// ARCHITECTURE.md.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("foxy-base", &[]),
    ("foxy-http", &[]),
    ("foxy-device", &["foxy-base"]),
    ("foxy-store", &["foxy-device", "foxy-base"]),
    ("foxy-schemes", &["foxy-store", "foxy-device", "foxy-base"]),
    ("foxy-rules", &["foxy-base"]),
    ("foxy-proxy", &["foxy-rules", "foxy-store", "foxy-http", "foxy-base"]),
    ("foxy-workload", &["foxy-base"]),
    ("foxy-report", &["foxy-base"]),
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
    ("foxy-torture", &["*"]),
    ("foxy", &["*"]),
];

/// Compares every normal dependency between our crates with the table. Tests may look further
/// (dev-dependencies).
pub fn check() -> Result<String, String> {
    let edges = edges(&workspace::metadata()?);
    let wrong: Vec<String> = edges.iter().filter_map(|(from, to)| refuse(from, to)).collect();
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
    let fine =
        allowed.contains(&to) || (allowed.contains(&"*") && to != "foxy" && to != "foxy-torture");
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
            ("foxy-torture", "foxy"),
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
}
