//! Converts the directives with which Squid removes header fields.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect};
use super::lines::SquidLine;
use super::{SquidImport, is_for_all};
use crate::settings;
use toml::Value;

type Converted = Result<(), ImportReason>;

/// Fields to remove from every request or response. All request fields are in one rule, and all
/// response fields in another, because only the first matching rule decides.
#[derive(Debug, Default)]
pub struct RemovedFields {
    request: Vec<(String, Original)>,
    response: Vec<(String, Original)>,
}

impl RemovedFields {
    pub fn finish(&self, draft: &mut ImportDraft) {
        for (list, key) in
            [(&self.request, "request-header-remove"), (&self.response, "response-header-remove")]
        {
            let Some((_, original)) = list.first() else { continue };
            let mut names: Vec<&str> = Vec::new();
            for (name, _) in list {
                if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                    names.push(name);
                }
            }
            let names = names.into_iter().map(Value::from).collect();
            let then = effect(key, Value::Array(names));
            let rule = AccessTerm::default().rule(&format!("{key} of Squid"), then);
            draft.list("rule", rule, original);
        }
    }
}

pub fn request_header_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let name = removed(line, "request-header-remove")?;
    import.removed_fields.request.push((name, line.original.clone()));
    Ok(())
}

pub fn reply_header_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let name = removed(line, "response-header-remove")?;
    import.removed_fields.response.push((name, line.original.clone()));
    Ok(())
}

/// Reads `NAME deny all`, which removes the field `NAME` from every message. `key` is the rule's
/// effect. For any other line, returns the reason why it is not converted.
fn removed(line: &SquidLine, key: &str) -> Result<String, ImportReason> {
    let name = line.argument(0).unwrap_or_default();
    if is_for_all(line, "allow", 1) && name != "All" {
        return Err(ImportReason::NotNeeded("foxy passes fields on".into()));
    }
    if !is_for_all(line, "deny", 1) || name == "All" || name == "Other" {
        let text = "foxy can only remove a named field from every message; write a rule instead";
        return Err(ImportReason::Opens(text.into()));
    }
    match settings::mistakes(&format!("[[rule]]\nthen = {{ {key} = [\"{name}\"] }}")) {
        None => Ok(name.to_owned()),
        Some(mistake) => Err(ImportReason::Missing(mistake)),
    }
}

pub fn forwarded_for(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match line.argument(0) {
        Some("delete") => {
            let removed = &mut import.removed_fields.request;
            removed.push(("X-Forwarded-For".into(), line.original.clone()));
            Ok(())
        }
        Some("off" | "truncate") => {
            Err(ImportReason::NotNeeded("foxy as a forward proxy adds no such field".into()))
        }
        _ => Err(ImportReason::Missing("foxy as a forward proxy adds no X-Forwarded-For".into())),
    }
}

pub fn via(_: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match line.argument(0) {
        Some("on") => Err(ImportReason::NotNeeded("foxy always sends Via".into())),
        _ => Err(ImportReason::Missing("foxy always sends Via, Age and Cache-Status".into())),
    }
}
