//! What the settings of interception make of the authority's folder, judged before anybody is
//! served.

use crate::authority_folder;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::{Civil, WallTime};
use foxy_proxy::intercept::{Authority, HostPattern, Interception};
use std::time::Duration;

/// An authority that ends sooner than this is worth a word.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Opens the authority and checks that it may vouch for every host of the list; none without one.
///
/// # Errors
/// [`Failure::Unusable`], with what would be right.
pub fn open(settings: &Settings, now: WallTime) -> Result<Option<Interception>, Failure> {
    let Some(folder) = &settings.access.intercept_ca else { return Ok(None) };
    let authority = authority_folder::open(folder, "intercept-ca", now)?;
    let end = authority.facts().not_after;
    if end.since(now) < SOON {
        let path = authority_folder::certificate(folder);
        let text = format!(
            "foxy: {} expires on {}; after that nothing is intercepted. Make a new one with `foxy ca init --force`",
            path.display(),
            Civil::of(end)
        );
        terminal::report(Level::Warning, &text);
    }
    of(authority, &settings.access.intercept_hosts).map(Some)
}

/// Interception for these hosts.
///
/// # Errors
/// [`Failure::Unusable`], when the authority may not vouch for one of them.
pub fn of(authority: Authority, hosts: &[HostPattern]) -> Result<Interception, Failure> {
    let constraints = &authority.facts().constraints;
    if let Some(host) = hosts.iter().find(|host| !constraints.permit_all(host)) {
        let permitted: Vec<_> = constraints.permitted().iter().map(ToString::to_string).collect();
        let text = format!(
            "{host} (intercept-hosts): the certificate authority may only vouch for {}; leave the host out, or make one for it \
             with `foxy ca init --allow`",
            permitted.join(", ")
        );
        return Err(Failure::Unusable(text));
    }
    Interception::new(authority, hosts.to_vec())
        .map_err(|error| Failure::Failed(format!("intercept-ca: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::intercept::{NewAuthority, make};

    #[test]
    fn a_host_that_the_authority_may_not_vouch_for_is_named() {
        let now = WallTime::from_seconds(1_800_000_000);
        let hosts = |texts: &[&str]| -> Vec<HostPattern> {
            texts.iter().map(|text| text.parse().expect("a host")).collect()
        };
        let allowed = hosts(&["a.test"]);
        let new = NewAuthority { name: "a", hosts: &allowed, now, validity: SOON };
        let made = make(&new).expect("made");
        let authority =
            || Authority::read(made.certificate.as_bytes(), &made.key, now).expect("usable");
        assert!(of(authority(), &hosts(&["a.test", "*.b.a.test"])).is_ok());
        let refused = of(authority(), &hosts(&["a.test", "test"]))
            .expect_err("more than allowed")
            .to_string();
        assert!(
            refused.starts_with("test (intercept-hosts): ")
                && refused.contains("only vouch for a.test;"),
            "{refused}"
        );
    }
}
