//! `foxy ca show`: where the certificate authority is, what it may vouch for, how long, and how
//! programs come to trust it.

use super::{folder, folder_argument};
use crate::authority_folder;
use crate::failure::Failure;
use crate::terminal;
use clap::{ArgMatches, Command};
use foxy_base::{CivilTime, WallTime, clock};
use foxy_proxy::intercept::{AuthorityFacts, HostPattern};
use std::fmt::Write;
use std::path::Path;

/// Its arguments.
pub fn command() -> Command {
    Command::new("show")
        .about(
            "Show a certificate authority: its hosts, its fingerprint, its end, and how to \
        trust it",
        )
        .arg(folder_argument())
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    print(&folder(matches))
}

/// Shows the authority in a folder.
pub fn print(folder: &Path) -> Result<(), Failure> {
    let facts = authority_folder::facts(folder)?;
    terminal::print(text(folder, &facts, clock::wall()).trim_end());
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
         or in one program, beside the system's authorities where it takes more than one:\n  \
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
        return "any: it is not constrained".into();
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
    use foxy_proxy::intercept::{NewAuthority, make};
    use std::time::Duration;

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
