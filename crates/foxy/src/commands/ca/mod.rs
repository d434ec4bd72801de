//! `foxy ca`: the certificate authority with which foxy ends TLS for hosts whose HTTPS is to be
//! cached.

mod init;
mod show;

use crate::failure::Failure;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use std::path::PathBuf;

/// Its commands.
pub fn command() -> Command {
    Command::new("ca")
        .about("Make or show the certificate authority for intercepted HTTPS")
        .long_about(
            "Make or show the certificate authority for intercepted HTTPS.\n\n\
             foxy caches HTTPS only for hosts that you list (`intercept-hosts`), and only for \
             clients that trust a certificate \
             authority of your own. It is constrained to the hosts you name when you make it: not \
             even its private key can \
             vouch for any other. For one command, `foxy run` does all of this by itself.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([init::command(), show::command()])
}

/// Runs one of them.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("init", matches)) => init::run(matches),
        Some(("show", matches)) => show::run(matches),
        _ => Err(Failure::Unusable("no command is given; `foxy ca --help` lists them".into())),
    }
}

/// Where the authority lies.
fn folder_argument() -> Arg {
    Arg::new("dir")
        .long("dir")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help("Its folder [default: ~/.local/share/foxy/ca]")
}

fn folder(matches: &ArgMatches) -> PathBuf {
    let given = matches.get_one::<PathBuf>("dir").cloned();
    given.unwrap_or_else(|| Machine::look().data_folder.join("ca"))
}
