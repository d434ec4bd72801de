//! Prepares the origins of a reverse proxy: reads the files of their TLS settings.

use crate::failure::Failure;
use crate::secret_file;
use crate::serve::tls::{add_authorities, origin_authorities};
use crate::settings::Settings;
use crate::settings::origins::OriginTable;
use foxy_proxy::upstream::{Authorities, GroupSettings, OriginTls, OwnCertificate, Probe};
use std::path::Path;

/// Returns the origins of the settings `[[origin]]` or `origin`. Returns an empty list for a
/// forward proxy.
pub fn open(settings: &Settings) -> Result<Vec<GroupSettings>, Failure> {
    if let Some(server) = settings.network.origin.clone() {
        return Ok(vec![GroupSettings::of_one(server)]);
    }
    settings.origins.iter().map(|origin| group(settings, origin)).collect()
}

fn group(settings: &Settings, origin: &OriginTable) -> Result<GroupSettings, Failure> {
    let origin = origin.clone();
    Ok(GroupSettings {
        tls: tls(settings, &origin)?,
        name: origin.name,
        hosts: origin.hosts,
        path: origin.path,
        servers: origin.servers,
        send_host: origin.send_host,
        http2: origin.http2,
        server_name: origin.server_name,
        proxy_header: origin.proxy_protocol,
        probe: origin.probe.map(|(path, interval)| Probe { path, interval }),
        connect_timeout: origin.connect_timeout,
        head_timeout: origin.head_timeout,
    })
}

/// Returns the TLS settings of an origin. Returns `None` if the settings for all origins apply.
fn tls(settings: &Settings, origin: &OriginTable) -> Result<Option<OriginTls>, Failure> {
    if origin.ca.is_empty() && origin.client_certificate.is_none() {
        return Ok(None);
    }
    let authorities = if origin.ca.is_empty() {
        origin_authorities(&settings.network.origin_ca)?
    } else {
        let mut only = Authorities::none();
        add_authorities(&mut only, &origin.ca, &format!("ca of the origin {}", origin.name))?;
        only
    };
    let Some((certificate, key)) = &origin.client_certificate else {
        return Ok(Some(OriginTls::trusting(authorities)));
    };
    let refuse = |reason: String| {
        let (certificate, key) = (certificate.display(), key.display());
        Failure::Unusable(format!(
            "{certificate} (client-certificate) with {key} (client-key): {reason}; give a \
             certificate in PEM and the key made for it"
        ))
    };
    let own = own_certificate(certificate, key).map_err(refuse)?;
    OriginTls::presenting(own, authorities).map(Some).map_err(refuse)
}

fn own_certificate(certificate: &Path, key: &Path) -> Result<OwnCertificate, String> {
    let chain = std::fs::read(certificate).map_err(|error| error.to_string())?;
    let key = secret_file::read(key).map_err(|error| format!("the key {error}"))?;
    OwnCertificate::read(&chain, &key)
}
