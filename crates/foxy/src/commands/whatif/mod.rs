//! `foxy whatif`: shows how many hits other sizes and policies would have. The curves come from a
//! running foxy, or from an access log.

mod log;
mod text;

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::serve::whatif::report::WhatIfReport;
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::json_argument;
use foxy_schemes::PolicyName;
use foxy_workload::trace::Format;
use std::path::PathBuf;
use text::CurveSource;

pub fn command() -> Command {
    let flag = |name: &'static str, value, help| {
        Arg::new(name).long(name).value_name(value).help(help).requires("log")
    };
    let log = "Access log of Squid, in the Common or Combined format, or foxy's JSON log; `-` is \
               the standard input [default: ask the running foxy]";
    let size = "Size of the cache to compare with, such as 10G; needed with a log";
    let policy = "Replacement policy of the cache [default: webcosm]";
    let format = "Format of the log, if foxy does not recognise it";
    let limit = "Objects above this size are not stored";
    let command = Command::new("whatif")
        .about("Show how many hits other cache sizes and policies would have")
        .arg(Arg::new("log").value_name("LOG").value_parser(value_parser!(PathBuf)).help(log))
        .arg(flag("size", "SIZE", size).value_parser(value_parser!(ByteSize)))
        .arg(flag("policy", "POLICY", policy).value_parser(value_parser!(PolicyName)))
        .arg(flag("object-limit", "SIZE", limit).value_parser(value_parser!(ByteSize)))
        .arg(flag("format", "FORMAT", format).value_parser(value_parser!(Format)))
        .arg(json_argument());
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (report, source) = match matches.get_one::<PathBuf>("log") {
        Some(path) => (log::report(matches, path)?, CurveSource::Finished),
        None => (ask(&AdminClient::new(matches)?)?, CurveSource::Running),
    };
    let printed = if matches.get_flag("json") {
        serde_json::to_string(&report).map_err(|error| Failure::Failed(error.to_string()))?
    } else {
        text::of(&report, source)
    };
    terminal::print(&printed);
    Ok(())
}

fn ask(client: &AdminClient) -> Result<WhatIfReport, Failure> {
    let answer = client.ask("GET", "/data/whatif", "")?;
    let unreadable = |error| {
        let text = format!("the running foxy sent no curves: {error}; use a foxy of its version");
        Failure::Failed(text)
    };
    serde_json::from_str(&answer).map_err(unreadable)
}
