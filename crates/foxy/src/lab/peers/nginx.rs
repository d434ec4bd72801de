//! nginx with proxy_cache: a worker for each core, a file for each object; the page cache is its memory.

use super::{Description, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let (cores, disk) = (description.cores, (description.disk.0 >> 20).max(1));
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
    proxy_cache_path {folder}/cache levels=1:2 keys_zone=compared:64m max_size={disk}m inactive=7d use_temp_path=off;
    upstream origin {{
        server {origin};
        keepalive 64;
    }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection \"\";
            proxy_cache compared;
        }}
    }}
}}
"
    );
    let serve = ["-c", &description.path("nginx.conf"), "-e", &description.path("messages"), "-p"];
    let serve = serve.map(str::to_owned).into_iter().chain([description.folder.display().to_string()]);
    Plan {
        folders: vec!["cache"],
        files: vec![("nginx.conf", file)],
        prepare: None,
        serve: serve.collect(),
        notes: vec!["no memory cache of its own: the page cache is its memory"],
    }
}
