//! `foxy serve`: runs the caching proxy.

use crate::failure::Failure;
use crate::serve::{self, ReadAgain};
use crate::settings::{self, flags};
use crate::terminal::{self, Level};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use std::path::{Path, PathBuf};

pub fn command() -> Command {
    let command = Command::new("serve")
        .about("Run the caching proxy")
        .long_about(
            "Run the caching proxy. Every flag can also be set in a TOML file. `foxy check` prints \
             the settings in force, and docs/configuration.md explains every setting.",
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help(
                    "Configuration file [default: ~/.config/foxy/foxy.toml, else \
                     /etc/foxy/foxy.toml, if the file exists]",
                ),
        );
    flags::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    serve::run(|| {
        let file = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
        let loaded = settings::load(file, Some(matches), &Machine::look())
            .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
        let level = Level::named(loaded.settings.operation.log_level)
            .expect("the table's words are the levels");
        terminal::set_level(level);
        for warning in &loaded.warnings {
            terminal::report(Level::Warning, &format!("foxy: {warning}"));
        }
        let (file, flags) = (file.map(Path::to_owned), matches.clone());
        let source = loaded.file.clone();
        let read_again = move || {
            settings::can_be_read_again(source.as_deref())?;
            settings::load(file.as_deref(), Some(&flags), &Machine::look())
        };
        Ok((loaded, Box::new(read_again) as Box<ReadAgain>))
    })
}
