//! `foxy doctor`: examines the machine and the configuration, and names the command that mends each
//! fault. Changes nothing.

mod machine;
mod network;
mod storage;

use crate::commands::admin_client::AdminClient;
use crate::failure::Failure;
use crate::serve::trial::{self, Finding, Severity};
use crate::settings::{self, Settings};
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::clock;
use foxy_cli::json_argument;
use foxy_cli::machine::Machine;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    /// foxy works, but slower, or not for long.
    Warning,
    /// foxy cannot start, or cannot serve.
    Fault,
}

impl Grade {
    const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

/// The result of one examination.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Diagnosis {
    subject: &'static str,
    grade: Grade,
    says: String,
    /// A command that mends the fault, or shows more about it.
    command: Option<String>,
}

impl Diagnosis {
    fn good(subject: &'static str, says: impl Into<String>) -> Self {
        Self { subject, grade: Grade::Good, says: says.into(), command: None }
    }

    fn bad(
        subject: &'static str,
        grade: Grade,
        says: impl Into<String>,
        command: impl Into<String>,
    ) -> Self {
        Self { subject, grade, says: says.into(), command: Some(command.into()) }
    }
}

pub fn command() -> Command {
    let config = Arg::new("config").long("config").value_name("FILE");
    let name = Arg::new("name").long("name").value_name("HOST").default_value("example.com");
    Command::new("doctor")
        .about("Examine machine and configuration; name the command that mends each fault")
        .long_about(
            "Examine limits, memory, file systems, space, io_uring, kernel, clock, DNS, \
             certificates, ports and configuration. Changes nothing. Exits with 0 if there is no \
             fault, otherwise with 1.",
        )
        .arg(
            config
                .value_parser(value_parser!(PathBuf))
                .help("Configuration file [default: as for `foxy serve`]"),
        )
        .arg(name.help("Host name to look up"))
        .arg(json_argument())
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let machine = Machine::look();
    let file = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let name = matches.get_one::<String>("name").expect("has a default");
    let found = match settings::load(file, None, &machine) {
        Ok(loaded) => {
            let mut found = examine(&loaded.settings, &machine, name);
            let has_fault = |subject| {
                found.iter().any(|known| known.subject == subject && known.grade == Grade::Fault)
            };
            let certificates = has_fault("certificates");
            found.extend(trials(&loaded.settings, certificates));
            found
        }
        Err(complaints) => {
            vec![Diagnosis::bad(
                "configuration",
                Grade::Fault,
                complaints.to_string(),
                file.map_or("foxy check".into(), |file| format!("foxy check {}", file.display())),
            )]
        }
    };
    let json = matches.get_flag("json");
    terminal::print(&if json { as_json(&found).to_string() } else { text(&found) });
    let faults = found.iter().filter(|diagnosis| diagnosis.grade == Grade::Fault).count();
    match faults {
        0 => Ok(()),
        1 => Err(Failure::Missed("1 fault".into())),
        _ => Err(Failure::Missed(format!("{faults} faults"))),
    }
}

fn examine(settings: &Settings, machine: &Machine, name: &str) -> Vec<Diagnosis> {
    let mut found = vec![
        machine::kernel(),
        machine::descriptors(settings),
        machine::memory(settings, machine),
        machine::clock(clock::wall()),
        storage::rings(),
    ];
    found.extend(settings.disk.stores().flat_map(storage::folder));
    found.push(network::names(settings, name));
    found.push(network::authorities(settings));
    let files = &settings.network.tls_certificate;
    found.extend(files.iter().map(|file| network::certificate(file, clock::wall())));
    found
}

/// Returns the problems that a start of foxy would report. If `known` is true, leaves out unusable
/// certificates, because another examination has reported them.
fn trials(settings: &Settings, known: bool) -> Vec<Diagnosis> {
    let mut findings = trial::try_out(settings);
    findings.retain(|finding| !(known && finding.key == "tls-certificate"));
    if let Some(address) = running(settings) {
        findings.retain(|finding| !is_use_by_foxy(finding));
        let says = format!("foxy runs, answers at {address}, and uses its addresses and stores");
        let mut found = vec![Diagnosis::good("foxy", says)];
        found.extend(diagnoses(findings));
        return found;
    }
    if findings.is_empty() {
        let says = "addresses, files, keys and stores can be opened";
        return vec![Diagnosis::good("start", says)];
    }
    diagnoses(findings)
}

/// Returns the admin address of a running foxy with this configuration.
fn running(settings: &Settings) -> Option<String> {
    let client = AdminClient::configured(settings).ok()?;
    client.troubles().is_ok().then(|| client.address())
}

/// Returns true if the finding says that an address or a store is in use.
fn is_use_by_foxy(finding: &Finding) -> bool {
    let is_address = matches!(
        finding.key,
        "listen" | "listen-tls" | "listen-transparent" | "fleet.listen" | "admin"
    );
    finding.severity == Severity::Warning
        && (is_address || finding.message.contains("in use by another foxy"))
}

fn diagnoses(findings: Vec<Finding>) -> Vec<Diagnosis> {
    let diagnosis = |finding: Finding| {
        let grade = match finding.severity {
            Severity::Error => Grade::Fault,
            Severity::Warning => Grade::Warning,
        };
        let (subject, command) = match finding.key {
            "listen" | "listen-tls" | "admin" => ("ports", "ss --listening --tcp --processes"),
            "store" => ("stores", "foxy check"),
            _ => ("configuration", "foxy check"),
        };
        Diagnosis::bad(subject, grade, finding.message, command)
    };
    findings.into_iter().map(diagnosis).collect()
}

fn text(found: &[Diagnosis]) -> String {
    let mut lines = Vec::new();
    for Diagnosis { subject, grade, says, command } in found {
        lines.push(format!("{:<8} {subject:<14} {says}", grade.name()));
        lines.extend(command.as_ref().map(|command| format!("{:24}→ {command}", "")));
    }
    lines.join("\n")
}

fn as_json(found: &[Diagnosis]) -> Value {
    let ok = found.iter().all(|diagnosis| diagnosis.grade != Grade::Fault);
    let list = found.iter().map(|Diagnosis { subject, grade, says, command }| {
        json!({ "subject": subject, "grade": grade.name(), "says": says, "command": command })
    });
    json!({ "ok": ok, "findings": list.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_command_in_text_and_json() {
        let found = [
            Diagnosis::good("kernel", "Linux 6.1"),
            Diagnosis::bad("clock", Grade::Fault, "it is 1970", "timedatectl set-ntp true"),
        ];
        let expected = "good     kernel         Linux 6.1\nfault    clock          it is 1970\n\
                        \u{20}                       → timedatectl set-ntp true";
        assert_eq!(text(&found), expected);
        let json = as_json(&found);
        assert_eq!(
            (json["ok"].as_bool(), &json["findings"][0]["command"]),
            (Some(false), &Value::Null)
        );
        assert_eq!(json["findings"][1]["command"], "timedatectl set-ntp true");
    }
}
