//! Reads settings from environment variables. For example, `FOXY_TIMEOUTS_CONNECT` is the variable
//! of the setting `timeouts.connect`.

use super::complaint::{Complaint, Complaints, Source};
use super::kind::{Kind, Setting};
use super::rows::{self, Written};
use super::{store_choice, text};
use foxy_cli::suggestion::nearest;
use std::ffi::{OsStr, OsString};

/// Prefix of the name of every environment variable for a setting.
pub const PREFIX: &str = "FOXY_";
/// The variable that names the configuration file, as `--config` does.
pub const CONFIG: &str = "FOXY_CONFIG";

/// Returns the name of the environment variable for a setting.
pub fn variable(setting: &Setting) -> String {
    format!("{PREFIX}{}", setting.key.replace(['.', '-'], "_").to_uppercase())
}

/// Parses `variables` into `written`. An empty variable counts as missing. Returns a warning for
/// each variable with the prefix that names no setting.
pub fn read(
    variables: &[(String, OsString)],
    written: &mut Written,
) -> Result<Vec<String>, Complaints> {
    let (mut complaints, mut warnings) = (Vec::new(), Vec::new());
    for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
        let Some(setting) = rows::all().find(|setting| variable(setting) == *name) else {
            warnings.extend((name != CONFIG).then(|| unknown(name)));
            continue;
        };
        let source = Source::Environment(name.clone());
        match text::put(&setting.kind, &split(&setting.kind, value), written) {
            Ok(()) => {
                written.sources.insert(setting.key, source);
            }
            Err(message) => complaints.push(Complaint { message, source: Some(source) }),
        }
    }
    if complaints.is_empty() { Ok(warnings) } else { Err(Complaints(complaints)) }
}

fn unknown(name: &str) -> String {
    // The common prefix would make all names similar.
    let rest = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    let all: Vec<String> = rows::all().map(|setting| rest(&variable(setting))).collect();
    match nearest(&rest(name), all.iter().map(String::as_str)) {
        Some(near) => {
            format!("{name} is not a setting and has no effect; did you mean {PREFIX}{near}?")
        }
        None => format!("{name} is not a setting and has no effect; unset the variable"),
    }
}

/// Splits the value of a list at commas. A comma before an option of a store belongs to that store,
/// so the value is not split there.
fn split<'a>(kind: &Kind, value: &'a OsStr) -> Vec<&'a OsStr> {
    let Some(text) = value.to_str().filter(|_| kind.notation().is_list) else {
        return vec![value];
    };
    let is_separator = |&(at, _): &(usize, &str)| {
        !matches!(kind, Kind::Stores(_)) || !store_choice::option_at(&text[at + 1..])
    };
    let mut items = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(',').filter(is_separator) {
        items.push(&text[start..at]);
        start = at + 1;
    }
    items.push(&text[start..]);
    items.into_iter().map(|item| OsStr::new(item.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn parsed(variables: &[(&str, &str)]) -> Result<(Written, Vec<String>), String> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).into(), value.into())).collect();
        let mut written = Written::default();
        let warnings = read(&variables, &mut written).map_err(|all| all.to_string())?;
        Ok((written, warnings))
    }

    #[test]
    fn every_setting_has_its_own_variable() {
        let names: BTreeSet<String> = rows::all().map(variable).collect();
        assert_eq!(names.len(), rows::all().count());
        assert!(names.contains("FOXY_LISTEN_TLS") && !names.contains(CONFIG));
    }

    #[test]
    fn variables_are_read_and_lists_split_at_commas() {
        let (written, warnings) = parsed(&[
            ("FOXY_TIMEOUTS_CONNECT", "5s"),
            ("FOXY_CONNECT_PORTS", "443, 8443"),
            ("FOXY_STORE", "/a,scheme=coss,size=1G,/b"),
            ("FOXY_WORKERS", ""),
        ])
        .expect("sound");
        assert_eq!(written.timeouts.connect, Some(Duration::from_secs(5)));
        assert_eq!(written.access.connect_ports, Some(vec![443, 8443]));
        assert_eq!(written.disk.store.expect("two").len(), 2);
        assert_eq!((written.network.workers, warnings.len()), (None, 0));
        assert_eq!(written.sources["store"].to_string(), "FOXY_STORE");
    }

    #[test]
    fn a_bad_value_and_an_unknown_variable_are_named() {
        let refused = parsed(&[("FOXY_WORKERS", "0")]).map(|_| ()).expect_err("too small");
        assert_eq!(refused, "FOXY_WORKERS: 0 is too small; give at least 1");
        let (_, warnings) =
            parsed(&[("FOXY_TIMEOUT_CONNECT", "5s"), (CONFIG, "/a")]).expect("sound");
        let expected = "FOXY_TIMEOUT_CONNECT is not a setting and has no effect; did you mean \
                        FOXY_TIMEOUTS_CONNECT?";
        assert_eq!(warnings, [expected]);
        let (_, warnings) = parsed(&[("FOXY_BOGUS", "1")]).expect("sound");
        assert_eq!(warnings, ["FOXY_BOGUS is not a setting and has no effect; unset the variable"]);
    }
}
