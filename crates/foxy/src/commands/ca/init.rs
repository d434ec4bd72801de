//! `foxy ca init`: makes a certificate authority that can vouch for the named hosts and nothing
//! else.

use super::{folder, folder_argument, show};
use crate::authority_folder;
use crate::failure::Failure;
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::clock;
use foxy_proxy::intercept::{HostPattern, NewAuthority, make};
use std::time::Duration;

/// Its arguments.
pub fn command() -> Command {
    Command::new("init")
        .about("Make a certificate authority that can vouch for the named hosts and nothing else")
        .long_about(
            "Make a certificate authority that can vouch for the named hosts and nothing else.\n\n\
             Its folder gets `ca.pem`, which clients are to trust, and `ca.key`, which only you \
             may read. \
             Nothing on this machine changes by it: no program trusts it until you say so.",
        )
        .arg(
            Arg::new("allow")
                .long("allow")
                .value_name("HOST")
                .action(ArgAction::Append)
                .required(true)
                .value_parser(value_parser!(HostPattern))
                .help(
                    "A host it may vouch for, with all names below it; or an address or block \
                of them; can be repeated",
                ),
        )
        .arg(folder_argument())
        .arg(
            Arg::new("days")
                .long("days")
                .value_name("N")
                .default_value("365")
                .value_parser(value_parser!(u64).range(1..=3650))
                .help("How long it is valid"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .help("Replace the one that is there; clients must then trust the new one"),
        )
}

/// Whether a name may be a top-level domain of the internet: those that never are one stand in RFC
/// 6761, RFC 6762 (`.local` and Appendix G), and `internal` is set apart by ICANN.
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

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let hosts: Vec<HostPattern> =
        matches.get_many("allow").into_iter().flatten().cloned().collect();
    if let Some(HostPattern::Below(name)) =
        hosts.iter().find(|host| matches!(host, HostPattern::Below(_)))
    {
        let text = format!(
            "--allow *.{name}: a certificate authority is for a name with all below it; give \
             --allow {name}"
        );
        return Err(Failure::Unusable(text));
    }
    for host in &hosts {
        if let HostPattern::Within(name) = host
            && is_wide(name)
        {
            let text = format!(
                "--allow {name}: it has no dot, so the authority may vouch for every name that \
                 ends in .{name}; name single \
                 hosts or domains instead if that is not meant"
            );
            terminal::report(Level::Warning, &text);
        }
    }
    let days = *matches.get_one::<u64>("days").expect("it has a default");
    let machine = rustix::system::uname();
    let name = format!("foxy on {}, for cached HTTPS", machine.nodename().to_string_lossy());
    let validity = Duration::from_secs(days * 86_400);
    let new = NewAuthority { name: &name, hosts: &hosts, now: clock::wall(), validity };
    let made = make(&new)
        .map_err(|error| Failure::Failed(format!("no certificate authority: {error}")))?;
    let folder = folder(matches);
    authority_folder::write(&folder, &made, matches.get_flag("force"))?;
    show::print(&folder)
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
}
