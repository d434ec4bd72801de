//! `foxy check [FILE]`: tries a configuration without serving, and prints the resulting settings.

use crate::failure::Failure;
use crate::serve::trial::{self, Severity};
use crate::settings::complaint::{Complaint, Complaints, LinePlace, Source};
use crate::settings::tables::TableTexts;
use crate::settings::{self, Loaded, docs, schema};
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn command() -> Command {
    let switch =
        |name: &'static str, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("check")
        .about("Try a configuration without serving, and print the settings in force")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("TOML file to check, or - for standard input [default: as for foxy serve]"),
        )
        .arg(switch("json", "Print the settings and all complaints as one JSON object"))
        .arg(switch("print-schema", "Print a JSON Schema of configuration files, for editors"))
        .arg(switch("print-docs", "Print docs/configuration.md").hide(true))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.get_flag("print-docs") {
        terminal::print(docs::markdown().trim_end());
        return Ok(());
    }
    if matches.get_flag("print-schema") {
        terminal::print(&schema::text());
        return Ok(());
    }
    let file = matches.get_one::<PathBuf>("file").map(PathBuf::as_path);
    let mut loaded = match settings::load(file, None, &Machine::look()) {
        Ok(loaded) => loaded,
        Err(complaints) => return refuse(matches, None, &[], complaints),
    };
    let (mut warnings, mut errors) = (Vec::new(), Vec::new());
    warnings.extend(
        loaded.warnings.iter().map(|message| Complaint { message: message.clone(), source: None }),
    );
    for finding in trial::try_out(&loaded.settings) {
        let source = loaded.source(finding.key).cloned();
        let complaint = Complaint { message: finding.message, source };
        match finding.severity {
            Severity::Error => errors.push(complaint),
            Severity::Warning => warnings.push(complaint),
        }
    }
    refuse(matches, Some(&mut loaded), &warnings, Complaints(errors))
}

/// Prints the settings, warnings and errors. Fails if there are errors.
fn refuse(
    matches: &ArgMatches,
    loaded: Option<&mut Loaded>,
    warnings: &[Complaint],
    errors: Complaints,
) -> Result<(), Failure> {
    let Complaints(list) = &errors;
    if matches.get_flag("json") {
        let all = warnings.iter().map(|complaint| as_json("warning", complaint));
        let all: Vec<_> =
            all.chain(list.iter().map(|complaint| as_json("error", complaint))).collect();
        let file = loaded.as_ref().and_then(|loaded| loaded.file.clone());
        let object = json!({
            "ok": list.is_empty(),
            "file": file,
            "rules": loaded.as_ref().map(|loaded| as_list(loaded.rules())),
            "origins": loaded.as_ref().map(|loaded| as_list(loaded.origins())),
            "settings": loaded.map(settings_as_json),
            "complaints": all,
        });
        terminal::print(&object.to_string());
    } else {
        if let Some(loaded) = loaded {
            terminal::print(&loaded.show());
        }
        for warning in warnings {
            terminal::report(Level::Warning, &format!("foxy: warning: {warning}"));
        }
    }
    if list.is_empty() { Ok(()) } else { Err(Failure::Unusable(errors.to_string())) }
}

fn as_list<'a>(tables: impl Iterator<Item = TableTexts<'a>>) -> Value {
    tables.map(|texts| json!({ "name": texts.name, "text": texts.shown })).collect()
}

fn settings_as_json(loaded: &mut Loaded) -> Value {
    let values = loaded.values();
    let entry = |(key, text): (&str, Option<String>)| {
        let table: Option<toml::Table> =
            text.and_then(|text| toml::from_str(&format!("value = {text}")).ok());
        let value = table.and_then(|table| serde_json::to_value(table.get("value")).ok());
        let source = loaded.source(key).map_or_else(|| "default".into(), ToString::to_string);
        (key.to_owned(), json!({ "value": value, "source": source }))
    };
    Value::Object(values.into_iter().map(entry).collect())
}

fn as_json(severity: &str, complaint: &Complaint) -> Value {
    let mut object = json!({ "severity": severity, "message": complaint.message });
    match &complaint.source {
        Some(Source::File(LinePlace { path, line, column, .. })) => {
            object["file"] = path.display().to_string().into();
            object["line"] = (*line).into();
            object["column"] = (*column).into();
        }
        Some(source) => object["source"] = source.to_string().into(),
        None => {}
    }
    object
}
