//! Tests certificates from pebble, a small ACME authority. `cargo xtask tools` installs pebble in
//! the target directory. To use another pebble, name it in `FOXY_PEBBLE`.

use crate::support::commands::foxy as run;
use crate::support::{Foxy, Origin, not_run, write_secret};
use foxy_testkit::certificates::{TestAuthority, client_trusting};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::ports::free_ports;
use foxy_testkit::wait;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The host name of all certificates. Both pebble and foxy's clients find it on this machine.
const NAME: &str = "localhost";
const DAYS: u64 = 90 * 86_400;

/// Returns the path of pebble. Prints a message if pebble is not installed.
fn pebble() -> Option<PathBuf> {
    let named = std::env::var_os("FOXY_PEBBLE").map(PathBuf::from);
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools/pebble");
    let found = named.or_else(|| installed.exists().then_some(installed));
    if found.is_none() {
        let reason = "pebble is not installed; `cargo xtask tools` does that where Go is";
        not_run("tests with an ACME authority", reason);
    }
    found
}

/// The authority, and the ports of authority and foxy.
struct Scene {
    program: PathBuf,
    folder: tempfile::TempDir,
    directory_port: u16,
    tls_port: u16,
    origin: Origin,
}

/// A running pebble. Drop ends it.
struct Authority(Child);

impl Drop for Authority {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ended_already = self.0.wait();
    }
}

impl Scene {
    fn new() -> Option<Self> {
        let program = pebble()?;
        let folder = tempfile::tempdir().expect("a folder");
        let authority = TestAuthority::new();
        let own = authority.sign(&["127.0.0.1"]);
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("ca.pem", &authority.pem());
        write("pebble.pem", own.pem());
        write("pebble.key", &own.key.serialize_pem());
        let (directory_port, tls_port) = (free_ports(1), free_ports(1));
        Some(Self { program, folder, directory_port, tls_port, origin: Origin::start() })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Starts the authority, whose certificates are valid for this number of seconds. It looks for
    /// answers to challenges at `tls_port`.
    fn authority(&self, tls_port: u16, validity: u64) -> Authority {
        self.authority_at((tls_port, 1), validity)
    }

    /// Starts the authority. It looks for answers to challenges at these ports.
    fn authority_at(&self, (tls_port, http_port): (u16, u16), validity: u64) -> Authority {
        let (port, certificate, key) =
            (self.directory_port, self.path("pebble.pem"), self.path("pebble.key"));
        let config = format!(
            r#"{{ "pebble": {{
                "listenAddress": "127.0.0.1:{port}",
                "managementListenAddress": "",
                "certificate": "{certificate}",
                "privateKey": "{key}",
                "httpPort": {http_port},
                "tlsPort": {tls_port},
                "retryAfter": {{ "authz": 1, "order": 1 }},
                "keyAlgorithm": "ecdsa",
                "profiles": {{
                    "default": {{ "description": "", "validityPeriod": {validity} }}
                }}
            }} }}"#
        );
        let file = self.path("pebble.json");
        std::fs::write(&file, config).expect("written");
        let mut command = Command::new(&self.program);
        command.args(["-strict", "-config", &file]);
        command.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_AUTHZREUSE", "0")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let authority = Authority(command.spawn().expect("pebble runs"));
        wait::until("pebble", || TcpStream::connect(("127.0.0.1", port)).ok());
        authority
    }

    fn flags(&self) -> Vec<String> {
        let directory = format!("https://127.0.0.1:{}/dir", self.directory_port);
        let origin = format!("http://{}", self.origin.address);
        let listen = format!("{NAME}:{}", self.tls_port);
        let (folder, ca) = (self.path("acme"), self.path("ca.pem"));
        let flags = [
            ("--origin", &*origin),
            ("--listen-tls", &listen),
            ("--acme-directory", &directory),
            ("--acme-folder", &folder),
            ("--acme-name", NAME),
            ("--acme-contact", "admin@example.org"),
            ("--acme-ca", &ca),
        ];
        flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
    }

    fn foxy(&self, more: &[&str]) -> Foxy {
        let flags = self.flags();
        let flags: Vec<&str> =
            flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Foxy::start(&self.folder.path().join("store"), &flags)
    }

    /// Returns the path of foxy's file with the certificate and its key.
    fn stored(&self) -> PathBuf {
        let place = format!("acme/127.0.0.1:{}/{NAME}.pem", self.directory_port);
        self.folder.path().join(place)
    }

    /// Connects over TLS. Trusts the certificate authority whose certificate comes after foxy's own
    /// certificate in `pem`.
    fn connect(&self, pem: &[u8]) -> Option<StreamOwned<ClientConnection, TcpStream>> {
        let root = CertificateDer::pem_slice_iter(pem).last().expect("a certificate").expect("PEM");
        let config = client_trusting([root], None);
        let name = NAME.try_into().expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let stream = TcpStream::connect((NAME, self.tls_port)).expect("foxy accepts");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let mut client = StreamOwned::new(session, stream);
        ask(&mut client).then_some(client)
    }

    /// Waits until foxy presents a certificate that its folder has. Returns the connection.
    fn first_connection(&self) -> StreamOwned<ClientConnection, TcpStream> {
        wait::until("a certificate", || self.connect(&std::fs::read(self.stored()).ok()?))
    }
}

/// Sends a request, and returns whether an answer came. The connection stays open.
fn ask(client: &mut StreamOwned<ClientConnection, TcpStream>) -> bool {
    let request = format!("GET /a?bytes=10 HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    if client.write_all(request.as_bytes()).is_err() {
        return false;
    }
    let mut answer = Vec::new();
    while !answer.windows(14).any(|part| part == b"\r\n\r\nthe page /") {
        let mut bytes = [0; 4096];
        match client.read(&mut bytes) {
            Ok(count @ 1..) => answer.extend_from_slice(&bytes[..count]),
            Ok(0) | Err(_) => return false,
        }
    }
    answer.starts_with(b"HTTP/1.1 200 ")
}

fn seen(client: &StreamOwned<ClientConnection, TcpStream>) -> CertificateDer<'static> {
    client.conn.peer_certificates().expect("a certificate")[0].clone().into_owned()
}

#[test]
fn a_certificate_comes_and_is_renewed_while_connections_stay_open() {
    let Some(scene) = Scene::new() else { return };
    let _authority = scene.authority(scene.tls_port, 16);
    let foxy = scene.foxy(&[]);
    assert!(foxy.welcome.contains("acme        certificates for localhost from https://"));
    let mut first = scene.first_connection();
    wait::until("a renewal", || {
        let later = scene.connect(&std::fs::read(scene.stored()).ok()?)?;
        (seen(&later) != seen(&first)).then_some(())
    });
    assert!(ask(&mut first), "the open connection goes on");
    for (path, expected) in [(scene.stored(), 0o600), (scene.path("acme").into(), 0o700)] {
        let mode = path.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", path.display());
    }
    assert_eq!(foxy.metric::<u64>("foxy_acme_failures_total"), 0);
}

#[test]
fn a_silent_authority_is_a_trouble_and_a_restart_keeps_the_certificate() {
    let Some(scene) = Scene::new() else { return };
    let (other, own) = (scene.path("other.pem"), scene.path("other.key"));
    let made = rcgen::generate_simple_self_signed(["other.test".to_owned()]).expect("made");
    std::fs::write(&other, made.cert.pem()).expect("written");
    write_secret(Path::new(&own), &made.signing_key.serialize_pem());
    let mut foxy = scene.foxy(&["--tls-certificate", &other, "--tls-key", &own]);
    foxy.report_containing("foxy: no certificate for localhost from https://");
    let health = foxy.admin("/healthz");
    assert_eq!(health.status, 503, "{health:?}");
    assert!(health.body.contains("no certificate for localhost from "), "{health:?}");
    assert!(foxy.metric::<u64>("foxy_acme_failures_total") > 0);
    let authority = scene.authority(scene.tls_port, DAYS);
    foxy.signal("HUP");
    foxy.report_containing("foxy: got a certificate for localhost, valid until ");
    let certificate = seen(&scene.first_connection());
    assert_eq!(foxy.admin("/healthz").status, 200);
    assert!(foxy.metric::<u64>("foxy_acme_certificate_end_seconds") > 0);
    foxy.signal("TERM");
    foxy.wait();
    drop(authority);
    let foxy = scene.foxy(&[]);
    assert_eq!(seen(&scene.first_connection()), certificate);
    assert_eq!(foxy.metric::<u64>("foxy_acme_failures_total"), 0);
}

#[test]
fn a_wrong_answer_to_the_challenge_is_reported_in_the_words_of_the_authority() {
    let Some(scene) = Scene::new() else { return };
    let elsewhere = TestOrigin::start(|_, _| b"no TLS".to_vec());
    let _authority = scene.authority(elsewhere.address.port(), DAYS);
    let mut foxy = scene.foxy(&[]);
    foxy.report_containing(
        "the authority connected to port 443 of the name, and did not get the expected answer: ",
    );
    assert!(!scene.stored().exists());
}

#[test]
fn a_certificate_comes_by_http_01_although_a_rule_redirects_to_https() {
    let Some(scene) = Scene::new() else { return };
    let http_port = free_ports(1);
    let listen = format!("{NAME}:{http_port}");
    let config = scene.path("foxy.toml");
    let rule = "[[rule]]\nwhen = { scheme = \"http\" }\n\
                then = { redirect = { to = \"https://$host$request_uri\" } }\n";
    std::fs::write(&config, rule).expect("written");
    let more = ["--acme-challenge", "http-01", "--listen", &listen, "--config", &config];
    let mut foxy = scene.foxy(&more);
    // Nothing listens at port 1, where this authority looks for TLS.
    let _authority = scene.authority_at((1, http_port), DAYS);
    foxy.signal("HUP");
    foxy.report_containing("foxy: got a certificate for localhost, valid until ");
    scene.first_connection();
}

#[test]
fn a_check_says_which_certificates_foxy_would_ask_for() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("foxy.toml");
    let folder = place.path().join("acme");
    let folder = folder.to_str().expect("UTF-8");
    let content = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"off\"\nscheme = \"null\"\n\
         listen-tls = \"127.0.0.1:0\"\n\
         [acme]\ndirectory = \"https://ca.example/dir\"\nfolder = \"{folder}\"\n\
         [[origin]]\nhosts = [\"b.example\", \"*.b.example\", \"192.0.2.1\", \"a.example\"]\n\
         servers = \"http://127.0.0.1:1\"\n"
    );
    std::fs::write(&file, content).expect("written");
    let (code, _, said) = run(&["check", file.to_str().expect("UTF-8")]);
    let expected =
        "foxy serve asks https://ca.example/dir for certificates, for a.example, b.example";
    assert!(code == Some(0) && said.contains(expected), "{code:?}: {said}");
    assert!(!Path::new(folder).exists(), "a check changes nothing");
}
