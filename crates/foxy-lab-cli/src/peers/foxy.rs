//! Sets up foxy with its default settings, except for the settings that the description of the
//! comparison gives.

use super::secured::TlsFiles;
use super::{Description, Plan};
use foxy_schemes::SCHEMES;

pub fn stores() -> Vec<&'static str> {
    SCHEMES.iter().map(|row| row.text).collect()
}

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let mut serve = ["serve", "--admin", "off"].map(str::to_owned).to_vec();
    let mut notes = Vec::new();
    match description.secured() {
        None => serve.extend(["--listen".to_owned(), listen.to_string()]),
        Some(TlsFiles { certificate, key, authority }) => {
            // By default foxy also listens on 127.0.0.1:3128, which may be in use. So foxy gets
            // another port, which the system chooses and no client uses.
            let listen = ["--listen", "127.0.0.1:0", "--listen-tls", &listen.to_string()];
            let own =
                ["--tls-certificate", &certificate, "--tls-key", &key, "--origin-ca", &authority];
            serve.extend(listen.into_iter().chain(own).map(str::to_owned));
            notes.push("speaks HTTP/2 with its origin, which offers it");
        }
    }
    serve.extend(["--origin".to_owned(), format!("{}://{origin}", description.scheme())]);
    for cache in description.caches() {
        serve.extend(["--store".to_owned(), cache.display().to_string()]);
    }
    let (size, memory) =
        (description.on_each_disk().0.to_string(), description.memory.0.to_string());
    if let Some(store) = description.store {
        serve.extend(["--scheme", store].map(str::to_owned));
    }
    serve.extend(["--size", &size, "--memory", &memory, "--access-log", "off"].map(str::to_owned));
    Plan { folders: vec!["cache"], serve, notes, ..Plan::default() }
}
