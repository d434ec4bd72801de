//! Finds a workload by its name, or reads it from a file.

use super::arguments::option;
use clap::{Arg, ArgMatches};
use foxy_cli::failure::Failure;
use foxy_workload::Workload;

pub fn argument() -> Arg {
    option("workload", "NAME|FILE.toml", "Workload from the list below, or a workload file")
}

pub fn help() -> String {
    let line = |workload: Workload| format!("  {:<11} {}", workload.name, workload.about);
    let lines: Vec<String> = Workload::named().map(line).collect();
    format!(
        "Workloads (files in workloads/, descriptions in docs/workloads.md):\n{}",
        lines.join("\n")
    )
}

pub fn named(matches: &ArgMatches) -> Result<Workload, Failure> {
    read(matches.get_one::<String>("workload").expect("has a default or is required"))
}

fn read(name: &str) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::find(name) {
        return Ok(workload);
    }
    let unusable = |what: String| Failure::Unusable(format!("--workload {what}"));
    if !name.ends_with(".toml") {
        let known: Vec<String> = Workload::named().map(|workload| workload.name).collect();
        let known = known.join(", ");
        return Err(unusable(format!(
            "{name}: no such workload; use {known}, or a file that ends in .toml"
        )));
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        unusable(format!("{name}: cannot be read: {error}; name a workload file"))
    })?;
    Workload::parse(name, &text).map_err(|error| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_what_is_wrong_with_it_is_said_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine.toml");
        let name = file.to_str().expect("UTF-8");
        let refusal = |name: &str| read(name).expect_err("refused").to_string();
        assert!(refusal(name).contains("mine.toml: cannot be read: "));
        std::fs::write(&file, "model = \"objects/1\"\nabout = \"x\"\nobjets = 5\n")
            .expect("written");
        let text = refusal(name);
        assert!(
            text.ends_with(
                "mine.toml: objects is not set; set a number from 1 on, such as objects = 1000"
            ),
            "{text}"
        );
        std::fs::write(&file, include_str!("../../../workloads/zipf.toml")).expect("written");
        assert_eq!(read(name).expect("a workload").name, "mine");
        assert!(refusal("coffee").contains("no such workload; use memory-hit, "));
    }
}
