//! Converts Squid's directives for logs, timeouts and limits.

use super::super::draft::{ImportDraft, Original};
use super::super::original_files;
use super::super::report::ImportReason;
use super::super::terms::written;
use super::lines::SquidLine;
use super::{SquidImport, unreadable, values};
use toml::Value;

type Converted = Result<(), ImportReason>;

pub fn name_servers(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    for server in line.arguments() {
        import.draft.push("name-servers", server.as_str(), &line.original);
    }
    Ok(())
}

/// Converts `access_log [MODULE:]PATH|none [FORMAT]`.
pub fn access_log(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let place = line.argument(0).ok_or_else(|| unreadable(&line.original))?;
    if place == "none" {
        import.draft.set("access-log", "off", &line.original);
        return Ok(());
    }
    let path = place.strip_prefix("daemon:").or_else(|| place.strip_prefix("stdio:"));
    let path = path.unwrap_or(place);
    if !path.starts_with('/') {
        return Err(ImportReason::Missing("foxy logs only to a file or to standard output".into()));
    }
    if import.draft.value("access-log").is_some() {
        return Err(ImportReason::Missing("foxy has one access log".into()));
    }
    let new = original_files::own_log(path, "/var/log/squid/");
    import.draft.set("access-log", new.as_str(), &line.original);
    let mut differences = vec![format!("foxy logs to {new}")];
    let mut formats = line.arguments()[1..]
        .iter()
        .map(|word| word.split_once('=').map_or(word.as_str(), |(_, value)| value));
    match formats.next() {
        None | Some("squid") => {}
        Some(format @ "combined") => import.draft.set("access-log-format", format, &line.original),
        Some(format) => differences.push(format!("foxy has no log format {format}")),
    }
    if formats.next().is_some() {
        differences.push("foxy logs every request".into());
    }
    Err(ImportReason::Differs(differences.join("; ")))
}

/// Sets a setting to a time. A number without a unit is in seconds.
pub fn time(import: &mut SquidImport<'_>, line: &SquidLine, key: &'static str) -> Converted {
    let time = values::time(line.arguments(), "second");
    import.draft.set(key, time.ok_or_else(|| unreadable(&line.original))?, &line.original);
    Ok(())
}

pub fn head_size(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let size = values::size(line.arguments(), "KB").ok_or_else(|| unreadable(&line.original))?;
    import.draft.set("limits.head-size", size, &line.original);
    Ok(())
}

pub fn connections_per_client(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match line.argument(0).map(str::parse::<i64>) {
        Some(Ok(count @ 1..)) => {
            import.draft.set("limits.connections-per-client", count, &line.original);
            Ok(())
        }
        _ => Err(ImportReason::NotNeeded("foxy has its own default".into())),
    }
}

pub fn auth_param(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match (line.argument(0), line.argument(1)) {
        (Some("basic"), Some("program")) => {
            import.passwords =
                line.arguments().last().filter(|path| path.starts_with('/')).cloned();
            let text = "see `users-file`, if a `proxy_auth` line is in use";
            Err(ImportReason::NotNeeded(text.into()))
        }
        (Some("basic"), Some("casesensitive")) if line.argument(2) == Some("off") => Err(
            ImportReason::Differs("foxy distinguishes upper and lower case in user names".into()),
        ),
        (Some("basic"), _) => Err(ImportReason::NotNeeded("foxy has its own default".into())),
        (scheme, _) => {
            let scheme = scheme.unwrap_or_default();
            Err(ImportReason::Missing(format!("foxy has no {scheme} authentication")))
        }
    }
}

/// Sets the ports to which CONNECT is permitted, from the ACL `PORTS` in `deny CONNECT !PORTS`.
pub fn set_connect_ports(draft: &mut ImportDraft, ports: Option<Vec<String>>, original: &Original) {
    const MOST: usize = 64;
    let numbers: Option<Vec<String>> =
        ports.filter(|ports| ports.len() <= MOST && ports.iter().all(|port| !port.contains('-')));
    match numbers {
        Some(ports) if ports == ["443"] => {}
        Some(ports) => {
            let value = match written(&ports) {
                Value::Array(values) => Value::Array(values),
                single => Value::Array(vec![single]),
            };
            draft.set("connect-ports", value, original);
        }
        None => {
            let text = "foxy opens tunnels to port 443 alone; see `connect-ports`";
            let file = Original::file("CONNECT");
            draft.leave(&file, ImportReason::Differs(text.into()));
        }
    }
}
