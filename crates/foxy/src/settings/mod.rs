//! The settings of foxy. A table (`rows`) defines all settings. foxy reads flags, environment
//! variables and a TOML file, and computes the final settings from them.

pub mod cold;
pub mod complaint;
pub mod docs;
mod environment;
pub mod exposure;
mod file;
pub mod flags;
pub mod fleet;
mod hints;
pub mod kind;
pub mod listen_address;
pub mod origins;
pub mod resolve;
pub mod rows;
pub mod rules;
pub mod schema;
pub mod secrets;
mod squid;
pub mod store_choice;
pub mod tables;
mod text;
pub mod values;

use complaint::{Complaint, Complaints, Source};
use foxy_cli::machine::Machine;
use kind::Setting;
pub use rows::Settings;
use rows::Written;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tables::TableTexts;

/// The final settings, and for each setting the place where the user wrote it.
pub struct Loaded {
    pub settings: Settings,
    pub file: Option<PathBuf>,
    /// Warnings about environment variables that name no setting.
    pub warnings: Vec<String>,
    written: Written,
}

impl Loaded {
    /// Returns all settings as a TOML file, for `foxy check`. A comment after each setting says
    /// where its value comes from.
    pub fn show(&mut self) -> String {
        let mut lines = Vec::new();
        let mut table = "";
        for setting in in_file_order() {
            let (prefix, name) = setting.key.split_once('.').unwrap_or(("", setting.key));
            if prefix != table {
                table = prefix;
                lines.push(format!("\n[{table}]"));
            }
            let source = self.source(setting.key);
            let source = source.map_or_else(|| "default".to_owned(), ToString::to_string);
            lines.push(match text::show(&setting.kind, &mut self.written) {
                Some(value) => format!("{:<54} # {source}", format!("{name} = {value}")),
                None if setting.key == "origin" && !self.written.origins.is_empty() => {
                    "# origin: see the list of [[origin]] below".to_owned()
                }
                None => format!("# {name}: {}", setting.default),
            });
        }
        lines.push(tables::show("origin", &self.written.origins, &origins::keys()));
        lines.push(tables::show("rule", &self.written.rules, rules::RULE_KEYS));
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns the place where the user wrote the setting. Returns `None` for a default.
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.written.sources.get(key)
    }

    /// Returns the name and the TOML text of each rule.
    pub fn rules(&self) -> impl Iterator<Item = TableTexts<'_>> {
        let keys = &rules::RULE_KEYS[1..];
        self.written.rules.iter().map(|written| written.texts(&written.value.name, keys))
    }

    /// Returns the name and the TOML text of each origin.
    pub fn origins(&self) -> impl Iterator<Item = TableTexts<'_>> {
        let keys = origins::keys();
        self.written.origins.iter().map(move |it| it.texts(&it.value.name, &keys[1..]))
    }

    /// Returns the keys of all settings with their values in TOML. The value is `None` for a
    /// setting that is unset.
    pub fn values(&mut self) -> Vec<(&'static str, Option<String>)> {
        let shown = |setting: &Setting| (setting.key, text::show(&setting.kind, &mut self.written));
        in_file_order().map(shown).collect()
    }
}

/// Returns all settings in the order of a TOML file. Keys without a table come first, because a
/// TOML table includes all keys after its header.
fn in_file_order() -> impl Iterator<Item = &'static Setting> {
    let (plain, nested): (Vec<_>, Vec<_>) =
        rows::all().partition(|setting| !setting.key.contains('.'));
    plain.into_iter().chain(nested)
}

/// Reads configuration file, environment variables and flags, adds defaults, and reports all
/// mistakes. `named` is the file of `--config`, which must exist; `-` is the standard input.
/// Without `named`, foxy tries the variable `FOXY_CONFIG` and then the usual paths.
pub fn load(
    named: Option<&Path>,
    flags: Option<&clap::ArgMatches>,
    machine: &Machine,
) -> Result<Loaded, Complaints> {
    let loaded = read(named, flags, machine)?;
    resolve::judge(&loaded.settings, &loaded.written)?;
    Ok(loaded)
}

/// Checks the text of a configuration file. Ignores the environment and flags. `path` appears only
/// in messages.
pub fn load_text(path: &Path, content: &str, machine: &Machine) -> Result<Loaded, Complaints> {
    let mut written = Written::default();
    file::read(path, content, &mut written)?;
    resolve::complete(&mut written, machine);
    let settings = Settings::of(&written);
    resolve::judge(&settings, &written)?;
    Ok(Loaded { settings, file: None, warnings: Vec::new(), written })
}

/// Returns the message of the first mistake in a part of a configuration file, or `None`. Does not
/// report missing settings.
pub fn mistakes(part: &str) -> Option<String> {
    let mut written = Written::default();
    let read = file::read(Path::new(""), part, &mut written);
    let Complaints(complaints) = read
        .err()
        .unwrap_or_else(|| Complaints(rules::compile(&written.rules).err().into_iter().collect()));
    complaints.into_iter().next().map(|complaint| complaint.message)
}

/// Reads the configuration as [`load`] does, but accepts settings that contradict each other.
/// Commands that talk to a running foxy use this, because the flags of that foxy may resolve a
/// contradiction.
pub fn read(
    named: Option<&Path>,
    flags: Option<&clap::ArgMatches>,
    machine: &Machine,
) -> Result<Loaded, Complaints> {
    let mut written = Written::default();
    let mut complaints = Vec::new();
    let mut gather = |result: Result<(), Complaints>| {
        if let Err(Complaints(more)) = result {
            complaints.extend(more);
        }
    };
    let environment = &machine.environment;
    let variable = environment.iter().find(|(name, _)| name == environment::CONFIG);
    let file = named
        .or_else(|| variable.map(|(_, value)| Path::new(value)))
        .or_else(|| machine.config_files.iter().map(PathBuf::as_path).find(|path| path.exists()));
    if let Some(path) = file {
        gather(read_file(path).and_then(|content| file::read(path, &content, &mut written)));
    }
    let mut warnings = Vec::new();
    gather(environment::read(environment, &mut written).map(|more| warnings = more));
    if let Some(matches) = flags {
        gather(flags::read(matches, &mut written));
    }
    if !complaints.is_empty() {
        return Err(Complaints(complaints));
    }
    resolve::complete(&mut written, machine);
    let settings = Settings::of(&written);
    Ok(Loaded { settings, file: file.map(Path::to_owned), warnings, written })
}

/// Fails if the configuration did not come from a regular file, but for example from a pipe. A
/// second reading would find nothing, and so would drop all rules.
pub fn can_be_read_again(file: Option<&Path>) -> Result<(), Complaints> {
    let Some(path) = file else { return Ok(()) };
    let file = path.display();
    let message = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => format!(
            "{file} is not a regular file, so foxy cannot read the configuration again; use a file"
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => format!(
            "the configuration file {file} does not exist; restore it, or restart foxy with another"
        ),
        Err(error) => format!("cannot read the configuration file {file}: {error}"),
    };
    Err(Complaints(vec![Complaint { message, source: None }]))
}

fn read_file(path: &Path) -> Result<String, Complaints> {
    let read = match path.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(path),
    };
    read.map_err(|error| {
        let message = format!(
            "cannot read the configuration file {}: {error}; name a TOML file that this user may \
             read",
            path.display()
        );
        Complaints(vec![Complaint { message, source: None }])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> clap::ArgMatches {
        flags::add_to(clap::Command::new("foxy").no_binary_name(true)).get_matches_from(arguments)
    }

    #[test]
    fn a_flag_overrides_a_variable_the_variable_the_file_and_the_file_the_default() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foxy.toml");
        std::fs::write(&path, "size = \"32M\"\nmemory = \"2M\"\nnegative-lifetime = \"1s\"\n")
            .expect("written");
        let matches = flags(&["--size", "64M"]);
        let environment =
            [("FOXY_SIZE", "48M"), ("FOXY_MEMORY", "4M"), ("FOXY_LIMITS_CONNECTIONS", "9")]
                .map(|(name, value)| (name.to_owned(), value.into()));
        let machine = Machine { environment: environment.to_vec(), ..Machine::default() };
        let mut loaded =
            load(Some(&path), Some(&matches), &machine).unwrap_or_else(|all| panic!("{all}"));
        assert_eq!(loaded.settings.disk.size.map(|size| size.0), Some(64 << 20));
        assert_eq!(loaded.settings.memory.size.0, 4 << 20);
        assert_eq!(loaded.settings.limits.connections, 9);
        assert_eq!(loaded.settings.limits.headers, 256);
        let shown = loaded.show();
        assert!(shown.contains("# --size\n"), "{shown}");
        assert!(shown.contains("foxy.toml:3:1\n"), "{shown}");
        assert!(shown.contains("# FOXY_MEMORY\n"), "{shown}");
    }

    #[test]
    fn the_shown_settings_are_a_file_that_gives_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foxy.toml");
        let machine = Machine { cores: 2, cache_folder: "/c".into(), ..Machine::default() };
        for arguments in [
            &["--allow-destination", "10.0.0.0/8", "--admin", "off", "--origin", "http://[::1]:81"]
                [..],
            &["--scheme", "coss"],
        ] {
            let matches = flags(arguments);
            let mut first =
                load(None, Some(&matches), &machine).unwrap_or_else(|all| panic!("{all}"));
            std::fs::write(&path, first.show()).expect("written");
            let second =
                load(Some(&path), None, &Machine::default()).unwrap_or_else(|all| panic!("{all}"));
            assert_eq!(second.settings, first.settings, "{arguments:?}");
        }
    }

    #[test]
    fn only_a_named_file_must_exist() {
        let missing = Path::new("/nonexistent/foxy.toml");
        let machine = Machine { config_files: vec![missing.into()], ..Machine::default() };
        assert!(load(None, None, &machine).is_ok());
        let Err(refused) = load(Some(missing), None, &machine) else {
            panic!("a missing file was taken")
        };
        assert!(
            refused
                .to_string()
                .starts_with("cannot read the configuration file /nonexistent/foxy.toml")
        );
    }
}
