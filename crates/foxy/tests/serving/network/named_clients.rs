//! Tests that nginx, as an origin, learns clients' addresses by the PROXY protocol. Without nginx,
//! the test only prints that it did not run.

use crate::support::{Foxy, not_run};
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ended_already = self.0.wait();
    }
}

/// Starts an nginx that answers with the client's address and the address of the proxy to which
/// the client connected. Returns `None` without nginx.
fn start(folder: &Path) -> Option<(Nginx, SocketAddr)> {
    let address = free_address();
    let own = folder.display();
    let configuration = format!(
        "daemon off; master_process off; pid {own}/pid; error_log stderr;
         events {{}}
         http {{
             access_log off;
             client_body_temp_path {own}/a; proxy_temp_path {own}/b; fastcgi_temp_path {own}/c;
             uwsgi_temp_path {own}/d; scgi_temp_path {own}/e;
             server {{
                 listen {address} proxy_protocol;
                 location / {{
                     return 200 '$proxy_protocol_addr:$proxy_protocol_port \
                                 $proxy_protocol_server_addr:$proxy_protocol_server_port';
                 }}
             }}
         }}"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration).expect("written");
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&file).arg("-p").arg(folder).stderr(Stdio::null());
    let nginx = Nginx(command.spawn().ok()?);
    until("nginx listens", || TcpStream::connect(address).ok());
    Some((nginx, address))
}

#[test]
fn nginx_learns_the_clients_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_nginx, origin)) = start(folder.path()) else {
        return not_run("the PROXY protocol with nginx", "no nginx here");
    };
    for version in ["v1", "v2"] {
        let file = folder.path().join("foxy.toml");
        let content =
            format!("[[origin]]\nservers = \"http://{origin}\"\nproxy-protocol = \"{version}\"\n");
        std::fs::write(&file, content).expect("written");
        let file = file.to_str().expect("UTF-8");
        let foxy = Foxy::start(&folder.path().join(version), &["--config", file]);
        for _ in 0..2 {
            let stream = TcpStream::connect(foxy.proxy).expect("connected");
            let client = stream.local_addr().expect("connected");
            let text = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
            let answer = foxy_testkit::client::exchange(stream, text);
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let expected = format!("{client} {}", foxy.proxy);
            assert!(answer.ends_with(&expected), "{expected}: {answer}");
        }
    }
}
