//! The commands of the proxy, each in its own file. `foxy --help` lists them in groups, together
//! with the commands of the lab.

mod admin_client;
pub mod ca;
pub mod check;
pub mod doctor;
pub mod explain;
mod figures;
pub mod fleet;
pub mod fsck;
pub mod health;
pub mod import;
pub mod log;
pub mod manual;
pub mod purge;
mod quantile;
pub mod reload;
pub mod run;
pub mod serve;
pub mod status;
pub mod store;
#[cfg(feature = "top")]
pub mod top;
pub mod upgrade;
pub mod user;
pub mod whatif;

use clap::{ArgMatches, Command};
use foxy_cli::Entry;
use foxy_cli::disk_helper;
use foxy_cli::failure::Failure;

/// The group of commands that run or configure a proxy.
const PROXY: &[Entry] = &[
    Entry { command: serve::command, run: serve::run },
    Entry { command: run::command, run: run::run },
    Entry { command: check::command, run: check::run },
    Entry { command: import::command, run: import::run },
    Entry { command: purge::command, run: purge::run },
    Entry { command: reload::command, run: reload::run },
    Entry { command: upgrade::command, run: upgrade::run },
    Entry { command: ca::command, run: ca::run },
    Entry { command: user::command, run: user::run },
    Entry { command: manual::completions_command, run: manual::print_completions },
    Entry { command: manual::man_command, run: manual::write_man },
    Entry { command: disk_helper::command, run: disk_helper::run },
];

/// The group of commands that inspect a proxy or a store without changing it.
const LOOK: &[Entry] = &[
    Entry { command: doctor::command, run: doctor::run },
    Entry { command: explain::command, run: explain::run },
    Entry { command: health::command, run: health::run },
    Entry { command: status::command, run: status::run },
    Entry { command: fleet::command, run: fleet::run },
    #[cfg(feature = "top")]
    Entry { command: top::command, run: top::run },
    Entry { command: log::command, run: log::run },
    Entry { command: whatif::command, run: whatif::run },
    Entry { command: fsck::command, run: fsck::run },
    Entry { command: store::command, run: store::run },
];

#[cfg(feature = "lab")]
const LAB: &[Entry] = foxy_lab_cli::COMMANDS;
#[cfg(not(feature = "lab"))]
const LAB: &[Entry] = &[];

/// The groups of commands, in the order of `foxy --help`.
const GROUPS: [(&str, &[Entry]); 3] = [("Proxy", PROXY), ("Look", LOOK), ("Lab", LAB)];

/// Version and commit for `--version`, and whether this build contains the lab.
const VERSION: &str = if cfg!(feature = "lab") {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("COMMIT"), ", with the lab)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("COMMIT"), ", without the lab)")
};

fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.into_iter().flat_map(|(_, entries)| entries)
}

/// Builds the parser for the whole command line.
pub fn command_line() -> Command {
    Command::new("foxy")
        .version(VERSION)
        .propagate_version(true)
        .about("A caching web proxy with a disk cache made for web objects")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}",
            listed_commands()
        ))
        .subcommands(entries().map(|entry| (entry.command)()))
}

/// Returns all commands with their descriptions, under the headings of their groups.
fn listed_commands() -> String {
    let mut text = String::new();
    for (heading, entries) in GROUPS.iter().filter(|(_, entries)| !entries.is_empty()) {
        text.push_str(&format!("\n{heading}:\n"));
        for command in entries.iter().map(|entry| (entry.command)()) {
            if let Some(about) = command.get_about().filter(|_| !command.is_hide_set()) {
                text.push_str(&format!("  {:<12} {about}\n", command.get_name()));
            }
        }
    }
    text
}

/// Runs the command that the user selected.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let given = matches.subcommand();
    let entry = given.and_then(|(name, matches)| {
        entries().find(|entry| (entry.command)().get_name() == name).map(|entry| (entry, matches))
    });
    let Some((entry, matches)) = entry else {
        return Err(Failure::Unusable(
            "no command is given; `foxy --help` lists the commands".into(),
        ));
    };
    (entry.run)(matches)
}

#[cfg(all(test, feature = "lab"))]
mod tests {
    use super::*;
    use std::path::Path;

    /// Returns the words of each `foxy` command in the `sh` blocks of a document. A command ends at
    /// text that only a shell can interpret.
    fn shown(document: &str) -> Vec<Vec<String>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = std::fs::read_to_string(path).expect("it is there").replace("\\\n", " ");
        let blocks = text.split("```sh").skip(1).filter_map(|rest| rest.split("```").next());
        let lines = blocks.flat_map(|block| block.lines().skip(1)).map(str::trim);
        let words = |line: &str| {
            let words = shlex::split(line).expect("each quotation mark has its partner");
            let words = words.into_iter().take_while(|word| !["&", "|", "&&"].contains(&&**word));
            words.map(|word| word.replace("$!", "1")).collect()
        };
        lines.filter(|line| line.starts_with("foxy ")).map(words).collect()
    }

    #[test]
    fn every_command_that_a_document_shows_is_taken() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let docs = std::fs::read_dir(docs).expect("a folder").flatten();
        let names = docs.filter_map(|entry| entry.file_name().into_string().ok());
        let documents =
            names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
        let mut found = 0;
        for document in documents.chain(["README.md".into()]) {
            for words in shown(&document) {
                found += 1;
                if let Err(refused) = command_line().try_get_matches_from(&words) {
                    panic!("{document}: {}: {refused}", words.join(" "));
                }
            }
        }
        assert!(found >= 50, "only {found} commands");
    }

    /// Returns whether a `cargo test` command can run tests. Its crate and test file must exist,
    /// and a test's name or file must contain the filter.
    fn is_test(words: &[&str]) -> bool {
        let ["cargo", "test", "-p", package, rest @ ..] = words else { return false };
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package);
        let (folder, filter) = match rest {
            ["--test", name, filter @ ..] => {
                let tests = package.join("tests").join(name);
                (if tests.is_dir() { tests } else { tests.with_extension("rs") }, filter)
            }
            ["--lib", filter @ ..] | ["--bin", _, filter @ ..] => (package.join("src"), filter),
            _ => return false,
        };
        let sources = sources(&folder);
        let names = |filter: &&str| {
            sources.iter().any(|(path, text)| path.contains(filter) || text.contains(filter))
        };
        !sources.is_empty() && filter.iter().all(names)
    }

    /// Returns names and texts of the files at or below a path.
    fn sources(at: &Path) -> Vec<(String, String)> {
        if let Ok(text) = std::fs::read_to_string(at) {
            return vec![(at.display().to_string(), text)];
        }
        let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
        entries.flat_map(|entry| sources(&entry.path())).collect()
    }

    #[test]
    fn every_command_that_shows_a_requirement_is_taken() {
        let refused = |command: &str| -> Option<String> {
            let words: Vec<&str> = command.split(' ').collect();
            match words.first() {
                Some(&"foxy") => {
                    let error = command_line().try_get_matches_from(&words).err()?;
                    Some(format!("{command}: {error}"))
                }
                _ if is_test(&words) => None,
                _ => Some(format!("{command}: there is no such test")),
            }
        };
        let commands = foxy_lab_cli::requirements::commands();
        let refused: Vec<String> = commands.into_iter().filter_map(refused).collect();
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}
