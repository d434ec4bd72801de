//! Examines DNS and certificates.

use super::{Diagnosis, Grade};
use crate::settings::Settings;
use foxy_authority::acme::validity;
use foxy_base::{CivilTime, WallTime, clock};
use foxy_proxy::server::name_resolver;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(5);
/// A DNS look-up that takes longer noticeably delays the first request to each host.
const SLOW: Duration = Duration::from_secs(1);
/// A certificate that expires within this time should be renewed now.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Looks up a name as foxy would.
pub fn names(settings: &Settings, name: &str) -> Diagnosis {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let make = name_resolver(settings.network.name_servers.clone());
    let begun = clock::monotonic();
    let found = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        runtime.block_on(async {
            let found = timeout(PATIENCE, make()?.resolve(name)).await;
            found.map_err(|_| "no answer within 5 s".to_owned())?.map_err(|error| error.to_string())
        })
    });
    let took = clock::monotonic().since(begun);
    let command = format!("resolvectl query {name}");
    match found {
        Err(why) => {
            let says = format!("{name} cannot be looked up: {why}");
            Diagnosis::bad("DNS", Grade::Fault, says, command)
        }
        Ok(_) if took > SLOW => {
            let says = format!("the look-up of {name} took {} ms", took.as_millis());
            Diagnosis::bad("DNS", Grade::Warning, says, command)
        }
        Ok(addresses) => {
            let (count, took) = (addresses.len(), took.as_millis());
            Diagnosis::good("DNS", format!("{name} has {count} addresses, found in {took} ms"))
        }
    }
}

/// Examines whether the system has certificate authorities, which foxy trusts for origins.
pub fn authorities(settings: &Settings) -> Diagnosis {
    match rustls_native_certs::load_native_certs().certs.len() {
        0 if settings.network.origin_ca.is_empty() => {
            let says =
                "the system trusts no certificate authority, so no https origin is reachable";
            Diagnosis::bad("authorities", Grade::Fault, says, "apt-get install ca-certificates")
        }
        count => Diagnosis::good("authorities", format!("the system trusts {count} authorities")),
    }
}

/// Examines the validity of a certificate for clients.
pub fn certificate(file: &Path, now: WallTime) -> Diagnosis {
    let content = std::fs::read(file).unwrap_or_default();
    let shown = file.display();
    let command = format!("openssl x509 -noout -dates -in {shown}");
    let Some(validity) = validity(&content) else {
        let says = format!("{shown} holds no readable certificate");
        return Diagnosis::bad("certificates", Grade::Fault, says, command);
    };
    let (start, end) = (CivilTime::of(validity.start), CivilTime::of(validity.end));
    let (grade, says) = if now.0 < validity.start.0 {
        (Grade::Fault, format!("{shown} is valid only from {start}"))
    } else if now.0 >= validity.end.0 {
        (Grade::Fault, format!("{shown} expired at {end}"))
    } else if validity.end.since(now) < SOON {
        (Grade::Warning, format!("{shown} expires at {end}; renew it"))
    } else {
        return Diagnosis::good("certificates", format!("{shown} is valid until {end}"));
    };
    Diagnosis::bad("certificates", grade, says, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_and_an_expiring_certificate_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.pem");
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("made");
        std::fs::write(&file, made.cert.pem()).expect("written");
        let end = validity(made.cert.pem().as_bytes()).expect("readable").end;
        let grade = |before: u64| {
            certificate(&file, WallTime(end.0.saturating_sub(before * 86_400_000))).grade
        };
        assert_eq!((grade(0), grade(13), grade(15)), (Grade::Fault, Grade::Warning, Grade::Good));
        let nothing = certificate(&folder.path().join("none"), WallTime(0));
        assert_eq!(nothing.grade, Grade::Fault);
    }
}
