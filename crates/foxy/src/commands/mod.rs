//! The commands of the proxy. Each command has its own file. `foxy --help` lists them before the
//! commands of the lab.

mod admin_client;
pub mod ca;
pub mod check;
pub mod explain;
pub mod fsck;
pub mod purge;
pub mod run;
pub mod serve;
pub mod store;

use clap::{ArgMatches, Command};
use foxy_cli::Entry;
use foxy_cli::disk_helper;
use foxy_cli::failure::Failure;

/// The commands of the proxy. The crate `foxy-lab-cli` defines the commands of the lab.
const COMMANDS: &[Entry] = &[
    Entry { command: serve::command, run: serve::run },
    Entry { command: ca::command, run: ca::run },
    Entry { command: run::command, run: run::run },
    Entry { command: check::command, run: check::run },
    Entry { command: explain::command, run: explain::run },
    Entry { command: purge::command, run: purge::run },
    Entry { command: fsck::command, run: fsck::run },
    Entry { command: store::command, run: store::run },
    Entry { command: disk_helper::command, run: disk_helper::run },
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    #[cfg(feature = "lab")]
    return COMMANDS.iter().chain(foxy_lab_cli::COMMANDS);
    #[cfg(not(feature = "lab"))]
    COMMANDS.iter()
}

/// Builds the parser for the whole command line.
pub fn command_line() -> Command {
    Command::new("foxy")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A caching web proxy with a disk cache made for web objects")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(entries().map(|entry| (entry.command)()))
}

/// Runs the command that the user selected.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let given = matches.subcommand();
    let entry = given.and_then(|(name, matches)| {
        entries().find(|entry| (entry.command)().get_name() == name).map(|entry| (entry, matches))
    });
    let Some((entry, matches)) = entry else {
        return Err(Failure::Unusable("no command is given; `foxy --help` lists them".into()));
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
            let words = line.split_whitespace().take_while(|word| !["&", "|", "&&"].contains(word));
            words
                .take_while(|word| !word.starts_with('#'))
                .map(|word| word.replace("$!", "1"))
                .collect()
        };
        lines.filter(|line| line.starts_with("foxy ")).map(words).collect()
    }

    #[test]
    fn every_command_that_the_readme_and_the_labs_page_show_is_taken() {
        for (document, least) in [("README.md", 8), ("docs/lab.md", 20)] {
            let commands = shown(document);
            assert!(commands.len() >= least, "{document}: {commands:?}");
            for words in commands {
                if let Err(refused) = command_line().try_get_matches_from(&words) {
                    panic!("{document}: {}: {refused}", words.join(" "));
                }
            }
        }
    }
}
