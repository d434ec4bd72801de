//! Sets up nginx with proxy_cache: one worker per core, one file per object, and no memory cache
//! except the page cache. With several disks, a hash of the URL chooses the disk.

use super::secured::{NAME, TlsFiles};
use super::{Description, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let (cores, disk) = (description.cores, (description.on_each_disk().0 >> 20).max(1));
    let zones = Zones(description.caches().len());
    let caches = description.for_each_cache(|number, cache| {
        let zone = zones.name(number);
        format!(
            "    proxy_cache_path {cache} levels=1:2 keys_zone={zone}:64m max_size={disk}m inactive=7d use_temp_path=off;"
        )
    });
    let (choice, chosen) = (zones.choice(), zones.chosen());
    let (scheme, secured) = (description.scheme(), description.secured());
    let (ends, inward, outward) = secured.map(|files| tls(&files)).unwrap_or_default();
    let file = format!(
        "daemon off;
worker_processes {cores};
pid {folder}/pid;
error_log {folder}/messages warn;
events {{
    worker_connections 16384;
}}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=100000 inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/temporary;
    fastcgi_temp_path {folder}/unused;
    uwsgi_temp_path {folder}/unused;
    scgi_temp_path {folder}/unused;
{caches}{choice}    upstream origin {{
        server {origin};
        keepalive 64;
    }}
    server {{
        listen {listen}{ends};
{inward}        location / {{
            proxy_pass {scheme}://origin;
{outward}            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection \"\";
            proxy_cache {chosen};
        }}
    }}
}}
"
    );
    let serve = ["-c", &description.path("nginx.conf"), "-e", &description.path("messages"), "-p"];
    let serve =
        serve.map(str::to_owned).into_iter().chain([description.folder.display().to_string()]);
    Plan {
        folders: vec!["cache"],
        files: vec![("nginx.conf", file)],
        prepare: None,
        serve: serve.collect(),
        helper: None,
        notes: vec!["no memory cache of its own: the page cache is its memory"],
    }
}

fn tls(TlsFiles { certificate, key, authority }: &TlsFiles) -> (&'static str, String, String) {
    let inward =
        format!("        ssl_certificate {certificate};\n        ssl_certificate_key {key};\n");
    let outward = format!(
        "            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate {authority};
            proxy_ssl_server_name on;
            proxy_ssl_name {NAME};
"
    );
    (" ssl http2", inward, outward)
}

struct Zones(usize);

impl Zones {
    fn name(&self, number: usize) -> String {
        if self.0 == 1 { "compared".into() } else { format!("compared{number}") }
    }

    fn choice(&self) -> String {
        if self.0 == 1 {
            return String::new();
        }
        let line = |number| {
            let share = if number < self.0 { format!("{}%", 100 / self.0) } else { "*".into() };
            format!("        {share} {};\n", self.name(number))
        };
        let lines: String = (1..=self.0).map(line).collect();
        format!("    split_clients $request_uri $compared {{\n{lines}    }}\n")
    }

    const fn chosen(&self) -> &'static str {
        if self.0 == 1 { "compared" } else { "$compared" }
    }
}
