//! Checks that every dependency can be used under a permissive licence.

use crate::workspace;

const PERMISSIVE: [&str; 13] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
];

/// Checks the licence of every package in the dependency graph.
pub fn check() -> Result<String, String> {
    let metadata = workspace::metadata()?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("?");
        let licence = package["license"].as_str().unwrap_or("none given");
        if !is_permissive(licence) {
            wrong.push(format!(
                "{name}: licence {licence:?} is not on the list in xtask/src/licences.rs"
            ));
        }
    }
    if wrong.is_empty() {
        Ok(format!("{} packages, all permissive", packages.len()))
    } else {
        Err(wrong.join("\n"))
    }
}

/// Whether the SPDX expression offers at least one choice with only licences of [`PERMISSIVE`].
fn is_permissive(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let mut required = flat.split(" AND ");
    required.all(|term| term.split(" OR ").any(|choice| PERMISSIVE.contains(&choice.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_permissive_choice_is_enough_and_every_required_one_counts() {
        for fine in
            ["MIT", "MIT OR GPL-3.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0/MIT"]
        {
            assert!(is_permissive(fine), "{fine}");
        }
        for refused in ["GPL-3.0", "MIT AND AGPL-3.0", "none given", ""] {
            assert!(!is_permissive(refused), "{refused}");
        }
    }
}
