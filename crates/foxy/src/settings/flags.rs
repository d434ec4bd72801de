//! Builds command-line flags from the table of settings, and reads their values.

use super::complaint::{Complaint, Complaints, Source};
use super::kind::{Notation, Setting};
use super::rows;
use super::rows::Written;
use super::text;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::{OsStr, OsString};

/// Adds the flags of all settings that have a flag.
pub fn add_to(command: Command) -> Command {
    flagged().fold(command, |command, (flag, setting)| command.arg(argument(flag, setting)))
}

/// Adds the flags of the settings in `keys` only.
pub fn add_some(command: Command, keys: &[&str]) -> Command {
    let wanted = flagged().filter(|(_, setting)| keys.contains(&setting.key));
    wanted.fold(command, |command, (flag, setting)| command.arg(argument(flag, setting)))
}

pub fn read(matches: &ArgMatches, written: &mut Written) -> Result<(), Complaints> {
    let mut complaints = Vec::new();
    for (flag, setting) in flagged() {
        // `add_some` may have left out the flag, so the command may not know it.
        let Ok(Some(values)) = matches.try_get_many::<OsString>(flag) else { continue };
        let texts: Vec<&OsStr> = values.map(OsString::as_os_str).collect();
        match text::put(&setting.kind, &texts, written) {
            Ok(()) => {
                written.sources.insert(setting.key, Source::Flag(flag));
            }
            Err(message) => {
                complaints.push(Complaint { message, source: Some(Source::Flag(flag)) })
            }
        }
    }
    if complaints.is_empty() { Ok(()) } else { Err(Complaints(complaints)) }
}

fn flagged() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    rows::all().filter_map(|setting| setting.flag.map(|flag| (flag, setting)))
}

fn argument(flag: &'static str, setting: &'static Setting) -> Arg {
    let Notation { placeholder, is_list, .. } = setting.kind.notation();
    let repeats = if is_list { "; can be repeated" } else { "" };
    let words: Vec<_> = setting.kind.words().iter().map(|(word, _)| *word).collect();
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    Arg::new(flag)
        .long(flag)
        .value_name(placeholder)
        .value_parser(clap::value_parser!(OsString))
        .action(if is_list { ArgAction::Append } else { ArgAction::Set })
        .help_heading(setting.chapter)
        .help(format!("{}{words}{repeats} [default: {}]", setting.summary(), setting.default))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Written, String> {
        let command = add_to(Command::new("foxy").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let mut written = Written::default();
        read(&matches, &mut written).map_err(|complaints| complaints.to_string())?;
        Ok(written)
    }

    #[test]
    fn flags_are_taken_and_lists_gathered() {
        let written =
            parsed(&["--listen", "[::1]:1", "--store", "/a", "--store=/b", "--admin", "off"]);
        let written = written.expect("sound");
        assert_eq!(written.network.listen.map(|list| list[0].to_string()), Some("[::1]:1".into()));
        assert_eq!(written.disk.store.map(|folders| folders.len()), Some(2));
        assert_eq!(written.network.admin, Some(Vec::new()));
        assert_eq!(written.sources["store"], Source::Flag("store"));
    }

    #[test]
    fn a_bad_value_names_its_flag_and_what_would_be_right() {
        assert_eq!(
            parsed(&["--size", "10X"]).expect_err("bad unit"),
            "--size: size \"10X\" has an unknown unit; use B, K, M, G or T"
        );
        assert!(parsed(&["--policy", "coffee"]).expect_err("unknown").contains("s3-fifo"));
        assert!(parsed(&["--scheme", "tape"]).expect_err("unknown").contains("stream-packetizer"));
    }
}
