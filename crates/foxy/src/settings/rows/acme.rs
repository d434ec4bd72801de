//! Settings of the chapter "Certificates from an ACME authority".

use super::super::kind::{Kind, Preset, Setting};
use super::super::values::{https_url, is_site_name, mail_address, site_name};
use super::Settings;
use foxy_proxy::upstream::ServedHost;
use std::path::PathBuf;

settings! {
    struct Acme, written as WrittenAcme in acme, chapter "Certificates from an ACME authority";

    /// URL of an ACME authority, from which foxy gets and renews
    /// [certificates](operation.md#certificates-from-an-acme-authority). You accept the authority's
    /// terms of service.
    directory: optional String = "acme.directory" flag "acme-directory",
        text(https_url, "URL", "https://acme-v02.api.letsencrypt.org/directory"),
        Nothing("foxy asks no authority");

    /// Folder for certificates and keys.
    folder: optional PathBuf = "acme.folder" flag "acme-folder",
        Folder, Nothing("none; `acme.directory` needs this folder");

    /// How foxy proves to the authority that it serves a name.
    challenge: given &'static str = "acme.challenge" flag "acme-challenge", choice(&[
        ("tls-alpn-01", "the authority connects to port 443, which must lead to `listen-tls`"),
        ("http-01", "the authority asks at port 80, which must lead to `listen`"),
    ]), Fixed("tls-alpn-01");

    /// Host names of the certificates. By default the names in `hosts` of [`[[origin]]`](#origins).
    names: given Vec<String> = "acme.names" flag "acme-name",
        texts(site_name, "HOST", "example.org"), Fixed();

    /// E-mail addresses for messages of the authority.
    contact: given Vec<String> = "acme.contact" flag "acme-contact",
        texts(mail_address, "MAIL", "admin@example.org"), Fixed();

    /// Files in PEM with further certificate authorities that foxy trusts for `acme.directory`.
    ca: given Vec<PathBuf> = "acme.ca" flag "acme-ca", Files, Fixed();
}

impl Settings {
    /// Returns whether the ACME authority asks for its proof over HTTP (HTTP-01).
    pub fn proves_names_over_http(&self) -> bool {
        self.acme.challenge == "http-01"
    }

    /// Returns the host names for which foxy gets certificates.
    pub fn acme_names(&self) -> Vec<String> {
        if self.acme.directory.is_none() || !self.acme.names.is_empty() {
            return self.acme.names.clone();
        }
        let hosts = self.origins.iter().flat_map(|origin| &origin.hosts);
        let names = hosts.filter_map(|host| match host {
            ServedHost::Exactly(name) if is_site_name(name) => Some(name.clone()),
            _ => None,
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    }
}
