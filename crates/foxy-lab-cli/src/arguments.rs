//! Command-line arguments that several lab commands share, and functions that build arguments.

use clap::builder::{PathBufValueParser, RangedU64ValueParser, TypedValueParser};
use clap::{Arg, ArgAction, value_parser};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::path::PathBuf;

pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    // clap names the option in its error only if it takes -5 as the option's value.
    Arg::new(name).long(name).value_name(value).help(help).allow_negative_numbers(true)
}

pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Builds the argument `--NAME FILE` for a file that the command writes after the run. The parser
/// refuses a path that cannot be written.
pub fn output(name: &'static str, help: &'static str) -> Arg {
    option(name, "FILE", help).value_parser(PathBufValueParser::new().try_map(writable))
}

fn writable(path: PathBuf) -> Result<PathBuf, String> {
    let folder = path.parent().map(|folder| folder.join(".")).unwrap_or_default();
    let looked_at = match std::fs::metadata(&path) {
        Ok(data) if data.is_dir() => Err(Errno::ISDIR),
        Ok(_) => access(&path, Access::WRITE_OK),
        Err(_) => access(&folder, Access::WRITE_OK | Access::EXEC_OK),
    };
    match looked_at {
        Ok(()) => Ok(path),
        Err(error) => Err(format!(
            "cannot be written: {error}; name a file in a folder that can be written to"
        )),
    }
}

/// Parses a number that must be at least 0.001, for example a scale or a rate.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.001);
    number.ok_or_else(|| format!("{text:?} is not a number of at least 0.001"))
}

pub fn count() -> RangedU64ValueParser {
    value_parser!(u64).range(1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Flag, flags};
    use clap::Command;

    #[test]
    fn a_negative_number_is_refused_with_the_name_of_its_option() {
        let command = Command::new("x").arg(option("requests", "N", "").value_parser(count()));
        let error = command.try_get_matches_from(["x", "--requests", "-5"]).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("'-5' for '--requests <N>'"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_the_run_and_none_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let refusal = |option: &str, file: &str| {
            let command = Command::new("x").args(flags([Flag::Json, Flag::Html]));
            let path = folder.path().join(file).display().to_string();
            command.try_get_matches_from(["x", option, &path]).err().map(|error| error.to_string())
        };
        std::fs::write(folder.path().join("there"), "kept").expect("written");
        for option in ["--json", "--html"] {
            for (file, expected) in [
                ("no/such", "No such file"),
                ("", "Is a directory"),
                ("there/x", "Not a directory"),
            ] {
                let text =
                    refusal(option, file).unwrap_or_else(|| panic!("{option} {file} is taken"));
                assert!(
                    text.contains(&format!("'{option} <FILE>': cannot be written: {expected}")),
                    "{text}"
                );
            }
            assert_eq!((refusal(option, "new"), refusal(option, "there")), (None, None));
        }
        assert!(!folder.path().join("new").exists());
        assert_eq!(std::fs::read_to_string(folder.path().join("there")).expect("there"), "kept");
        assert_eq!(writable("of-the-working-folder".into()), Ok("of-the-working-folder".into()));
    }
}
