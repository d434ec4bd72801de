//! `foxy ca`: creates and shows the certificate authority with which foxy intercepts TLS.

use crate::authority_folder;
use crate::failure::Failure;
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::{CivilTime, HostPattern, WallTime, clock};
use foxy_cli::json_argument;
use foxy_cli::machine::Machine;
use foxy_proxy::intercept::{AuthorityFacts, NewAuthority, make};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn command() -> Command {
    Command::new("ca")
        .about("Make or show the certificate authority for intercepted HTTPS")
        .long_about(
            "Make or show the certificate authority for intercepted HTTPS.\n\n\
             foxy caches HTTPS only for hosts that you list in `intercept-hosts`, and only for \
             clients that trust your own certificate authority. The authority can sign only for \
             the hosts that you name when you make it. Even a stolen private key cannot sign for \
             another host. `foxy run` makes its own authority for each command.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([init_command(), show_command()])
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("init", matches)) => init(matches),
        Some(("show", matches)) if matches.get_flag("json") => show_json(&folder(matches)),
        Some(("show", matches)) => show(&folder(matches)),
        _ => Err(Failure::Unusable(
            "no command is given; `foxy ca --help` lists the commands".into(),
        )),
    }
}

fn init_command() -> Command {
    let about = "Make a certificate authority that can sign only for the named hosts";
    Command::new("init")
        .about(about)
        .long_about(format!(
            "{about}.\n\nThe command writes two files to the folder: `ca.pem`, which clients must \
             trust, and `ca.key`, which only you may read. Nothing else on this machine changes: \
             no program trusts the authority until you configure that program.",
        ))
        .arg(
            Arg::new("allow")
                .long("allow")
                .value_name("HOST")
                .action(ArgAction::Append)
                .required(true)
                .value_parser(value_parser!(HostPattern))
                .help(
                    "The authority may sign for this host and all names below it, or for this \
                     address or block of addresses; can be repeated",
                ),
        )
        .arg(folder_argument())
        .arg(
            Arg::new("days")
                .long("days")
                .value_name("N")
                .default_value("365")
                .value_parser(value_parser!(u64).range(1..=3650))
                .help("Number of days until the authority expires"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .help("Replace an existing authority; clients must then trust the new authority"),
        )
}

fn show_command() -> Command {
    Command::new("show")
        .about("Show a certificate authority: hosts, fingerprint, expiry date, and how to trust it")
        .arg(folder_argument())
        .arg(json_argument())
}

fn folder_argument() -> Arg {
    Arg::new("dir")
        .long("dir")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help("Folder of the authority [default: ~/.local/share/foxy/ca]")
}

fn folder(matches: &ArgMatches) -> PathBuf {
    let given = matches.get_one::<PathBuf>("dir").cloned();
    given.unwrap_or_else(|| Machine::look().data_folder.join("ca"))
}

/// Returns whether `name` may be a top-level domain of the internet. `internal` and the names that
/// RFC 6761 and RFC 6762 (`.local` and Appendix G) reserve cannot be such a domain.
fn is_wide(name: &str) -> bool {
    const PRIVATE: [&str; 12] = [
        "test",
        "localhost",
        "invalid",
        "example",
        "local",
        "intranet",
        "internal",
        "private",
        "corp",
        "home",
        "lan",
        "onion",
    ];
    !name.contains('.') && !PRIVATE.contains(&name)
}

fn init(matches: &ArgMatches) -> Result<(), Failure> {
    let hosts: Vec<HostPattern> =
        matches.get_many("allow").into_iter().flatten().cloned().collect();
    for host in &hosts {
        if let HostPattern::Below(name) = host {
            return Err(Failure::Unusable(format!(
                "--allow *.{name}: a certificate authority always includes the name itself; give \
                 --allow {name}, which includes all names below it"
            )));
        }
    }
    for host in &hosts {
        if let HostPattern::Within(name) = host
            && is_wide(name)
        {
            let text = format!(
                "--allow {name}: the name has no dot, so the authority may sign for every name \
                 that ends in .{name}; to avoid this, name single hosts or domains"
            );
            terminal::report(Level::Warning, &text);
        }
    }
    let days = *matches.get_one::<u64>("days").expect("it has a default");
    let machine = rustix::system::uname();
    let name = format!("foxy on {}, for cached HTTPS", machine.nodename().to_string_lossy());
    let validity = Duration::from_secs(days * 86_400);
    let new = NewAuthority { name: &name, hosts: &hosts, now: clock::wall(), validity };
    let made = make(&new).map_err(|error| {
        Failure::Failed(format!("cannot make a certificate authority: {error}"))
    })?;
    let folder = folder(matches);
    authority_folder::write(&folder, &made, matches.get_flag("force"))?;
    show(&folder)
}

fn show(folder: &Path) -> Result<(), Failure> {
    let facts = authority_folder::facts(folder)?;
    terminal::print(text(folder, &facts, clock::wall()).trim_end());
    Ok(())
}

fn show_json(folder: &Path) -> Result<(), Failure> {
    let facts = authority_folder::facts(folder)?;
    let hosts = facts.constraints.permitted().iter().map(ToString::to_string);
    let object = json!({
        "certificate": authority_folder::certificate(folder).display().to_string(),
        "key": authority_folder::key(folder).display().to_string(),
        "subject": facts.subject,
        "hosts": hosts.collect::<Vec<_>>(),
        "valid_until": CivilTime::of(facts.not_after).to_string(),
        "sha256": fingerprint(&facts.fingerprint),
    });
    terminal::print(&object.to_string());
    Ok(())
}

fn text(folder: &Path, facts: &AuthorityFacts, now: WallTime) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        writeln!(text, "{name:<12} {value}").expect("a String takes all");
    };
    let certificate = authority_folder::certificate(folder).display().to_string();
    row("certificate", certificate.clone());
    row("key", authority_folder::key(folder).display().to_string());
    row("subject", facts.subject.clone());
    row("hosts", hosts(facts.constraints.permitted()));
    row("valid until", until(facts, now));
    row("SHA-256", fingerprint(&facts.fingerprint));
    let folder = folder.display();
    let first = match facts.constraints.permitted().first() {
        Some(HostPattern::Within(name) | HostPattern::Below(name)) => name.to_string(),
        _ => "HOST".into(),
    };
    write!(
        text,
        "\nUse it:   foxy serve --intercept-ca {folder} --intercept-host {first}\n\
         Trust it in one command:\n  \
           foxy run --proxy 127.0.0.1:3128 --ca {folder} -- CMD…\n\
         or in one program, in addition to the system's authorities if it accepts several:\n  \
           curl --cacert, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, PIP_CERT, NODE_EXTRA_CA_CERTS, \
           CARGO_HTTP_CAINFO, GIT_SSL_CAINFO\n\
         or on the whole machine:\n  \
           Debian    cp {certificate} /usr/local/share/ca-certificates/foxy.crt && \
           update-ca-certificates\n  \
           Fedora    trust anchor {certificate}\n  \
           Java      keytool -importcert -cacerts -alias foxy -file {certificate}\n"
    )
    .expect("a String takes all");
    text
}

fn hosts(permitted: &[HostPattern]) -> String {
    if permitted.is_empty() {
        return "any host: the authority is not constrained".into();
    }
    permitted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn until(facts: &AuthorityFacts, now: WallTime) -> String {
    let end = CivilTime::of(facts.not_after);
    let left = facts.not_after.since(now).as_secs().div_ceil(86_400);
    if left == 0 { format!("{end}: expired") } else { format!("{end} ({left} days left)") }
}

fn fingerprint(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_be_top_level_domains_are_wide() {
        for (name, wide) in [
            ("com", true),
            ("dev", true),
            ("example.com", false),
            ("localhost", false),
            ("lan", false),
        ] {
            assert_eq!(is_wide(name), wide, "{name}");
        }
    }

    #[test]
    fn hosts_end_and_fingerprint_are_shown() {
        let now = WallTime::from_seconds(1_800_000_000);
        let allowed = ["a.test".parse().expect("a host"), "10.0.0.0/8".parse().expect("a block")];
        let validity = Duration::from_secs(30 * 86_400);
        let new = NewAuthority { name: "foxy on a machine", hosts: &allowed, now, validity };
        let made = make(&new).expect("made");
        let facts = AuthorityFacts::read(made.certificate.as_bytes()).expect("a certificate");
        let shown = text(Path::new("/ca"), &facts, now);
        for expected in [
            "certificate  /ca/ca.pem\n",
            "hosts        a.test, 10.0.0.0/8\n",
            "valid until  2027-02-14 (30 days left)\n",
            "--intercept-ca /ca --intercept-host a.test\n",
        ] {
            assert!(shown.contains(expected), "{expected}{shown}");
        }
        assert!(shown.contains(&fingerprint(&facts.fingerprint)), "{shown}");
        assert!(text(Path::new("/ca"), &facts, facts.not_after).contains("2027-02-14: expired"));
    }
}
