//! A client for the admin server of a running foxy. It finds the server's address and token, and
//! sends one request.

use crate::failure::Failure;
use crate::serve::admin::access::read_token_word;
use crate::settings::listen_address::ListenAddress;
use crate::settings::{self, Settings};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Adds the flags that select a running foxy: its configuration file, its admin address,
/// and the file with its token.
pub fn add_to(command: Command) -> Command {
    let flag =
        |name: &'static str, value, help| Arg::new(name).long(name).value_name(value).help(help);
    let config = "Configuration file of the running foxy [default: as for `foxy serve`]";
    let admin = "Address of the running foxy's admin server [default: the configured address]";
    let token = "File with the token of the admin server [default: the configured file]";
    command
        .arg(flag("config", "FILE", config).value_parser(value_parser!(PathBuf)))
        .arg(flag("admin", "ADDRESS", admin).value_parser(value_parser!(ListenAddress)))
        .arg(flag("admin-token-file", "FILE", token).value_parser(value_parser!(PathBuf)))
}

pub struct AdminClient {
    address: ListenAddress,
    authorization: String,
    patience: Duration,
}

impl AdminClient {
    /// Finds the admin server's address and token: flags come first, then the configuration.
    pub fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let file = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
        let loaded = settings::read(file, None, &Machine::look())
            .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
        let given = matches.get_one::<ListenAddress>("admin");
        let token_file = matches.get_one::<PathBuf>("admin-token-file");
        Self::of(&loaded.settings, given, token_file)
    }

    /// Finds the admin server's address and token in the configuration.
    pub fn configured(settings: &Settings) -> Result<Self, Failure> {
        Self::of(settings, None, None)
    }

    fn of(
        settings: &Settings,
        given: Option<&ListenAddress>,
        token_file: Option<&PathBuf>,
    ) -> Result<Self, Failure> {
        let configured = settings.network.admin.iter();
        let address = given.into_iter().chain(configured).find(|address| is_whole(address));
        let address = address.cloned().ok_or_else(|| {
            Failure::Unusable(
                "the configuration names no admin server; give its address with --admin ADDRESS"
                    .into(),
            )
        })?;
        let authorization = match token_file.or(settings.access.admin_token_file.as_ref()) {
            Some(path) => format!("Authorization: Bearer {}\r\n", read_token_word(path)?),
            None => String::new(),
        };
        Ok(Self { address, authorization, patience: ANSWER_TIMEOUT })
    }

    /// Returns the address of the admin server.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets the longest wait for each read of the answer to `patience`.
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sends a request, and returns the body of the response. If the server refuses the request,
    /// the error contains the text of the response.
    pub fn ask(&self, method: &str, target: &str, body: &str) -> Result<String, Failure> {
        let answer = self.exchange(method, target, body)?;
        body_of(&answer).map_err(|text| self.failed(&text))
    }

    /// Asks for a page with JSON.
    pub fn ask_for_json(&self, target: &str) -> Result<Value, Failure> {
        let answer = self.ask("GET", target, "")?;
        serde_json::from_str(&answer)
            .map_err(|error| self.failed(&format!("the answer is not JSON: {error}")))
    }

    /// Returns the troubles that the running foxy reports.
    pub fn troubles(&self) -> Result<Vec<String>, Failure> {
        self.health().map(|(_, troubles)| troubles)
    }

    /// Returns whether the running foxy is healthy, and its troubles. Mild troubles leave foxy
    /// healthy.
    pub fn health(&self) -> Result<(bool, Vec<String>), Failure> {
        let answer = self.exchange("GET", "/healthz", "")?;
        let (_, body) = status_and_body(&answer).map_err(|text| self.failed(&text))?;
        let health: Value = serde_json::from_str(&body)
            .map_err(|error| self.failed(&format!("the answer is not JSON: {error}")))?;
        let troubles = health["troubles"].as_array().into_iter().flatten();
        let troubles = troubles.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        Ok((health["ok"] == true, troubles))
    }

    fn failed(&self, text: &str) -> Failure {
        Failure::Failed(format!("{}: {text}", self.address))
    }

    /// Sends a request, and returns the bytes of the response.
    fn exchange(&self, method: &str, target: &str, body: &str) -> Result<Vec<u8>, Failure> {
        let Self { address, authorization, patience } = self;
        let unreachable = |error: std::io::Error| {
            let text = format!(
                "no foxy answers at {address}: {error}; start foxy, or give the address of its \
                 admin server with --admin"
            );
            Failure::Failed(text)
        };
        let mut stream = connect(address, *patience).map_err(unreachable)?;
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: \
             {length}\r\n\r\n"
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .map_err(unreachable)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(unreachable)?;
        Ok(answer)
    }
}

/// Returns whether a client can connect to the address. Port 0 means that the system chose a port,
/// which this process does not know.
fn is_whole(address: &ListenAddress) -> bool {
    address.sockets().iter().all(|socket| socket.port() != 0)
}

trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

fn connect(address: &ListenAddress, patience: Duration) -> std::io::Result<Box<dyn Connection>> {
    if let ListenAddress::Unix(path) = address {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        return Ok(Box::new(stream));
    }
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for mut socket in address.sockets() {
        if socket.ip().is_unspecified() {
            socket.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        match TcpStream::connect_timeout(&socket, ANSWER_TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                return Ok(Box::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn status_and_body(answer: &[u8]) -> Result<(u16, String), String> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(answer);
    let (Ok(httparse::Status::Complete(length)), Some(status)) = (parsed, response.code) else {
        return Err(
            "the answer does not come from foxy; give the address of foxy's admin server with \
             --admin"
                .into(),
        );
    };
    Ok((status, String::from_utf8_lossy(&answer[length..]).into_owned()))
}

/// Returns the body of a response. If the status is not 200, returns an error text, usually the
/// body.
fn body_of(answer: &[u8]) -> Result<String, String> {
    let (status, body) = status_and_body(answer)?;
    match status {
        200 => Ok(body),
        404 | 405 => {
            Err("this server does not support the request; it may be another version of foxy, or \
                 the proxy instead of the admin server; give the address of the admin server with \
                 --admin"
                .into())
        }
        _ => Err(format!("{} ({status})", body.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusals_text_is_the_message() {
        let cases = [
            ("HTTP/1.1 200 OK\r\n\r\n{}\n", Ok("{}\n".to_owned())),
            ("HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\nnot you\n", Err("not you (403)".to_owned())),
        ];
        for (answer, expected) in cases {
            assert_eq!(body_of(answer.as_bytes()), expected);
        }
        assert!(
            body_of(b"SSH-2.0-x\r\n").expect_err("no HTTP").contains("does not come from foxy")
        );
        assert!(
            body_of(b"HTTP/1.1 404 Not Found\r\n\r\n")
                .expect_err("not there")
                .contains("another version")
        );
    }
}
