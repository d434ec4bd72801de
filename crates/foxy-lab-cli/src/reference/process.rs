//! A reference proxy with the architecture of CERN httpd: a process for each connection. The
//! process runs this program, with the connection as its standard input.

use super::pools::accept_each;
use super::{Options, Proxy};
use rustix::process::{WaitOptions, wait};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::Builder;

pub const CONNECTION: &str = "connection";

pub fn start(options: &Options, listener: TcpListener) -> io::Result<()> {
    let (options, program) = (options.clone(), std::env::current_exe()?);
    let accept = move || {
        accept_each(&listener, |client| {
            // If no process can be started, the connection closes.
            let _closed = command(&options, &program, client).spawn();
            while let Ok(Some(_ended)) = wait(WaitOptions::NOHANG) {}
        });
    };
    Builder::new().name("accept".into()).spawn(accept).map(|_| ())
}

fn command(options: &Options, program: &PathBuf, client: TcpStream) -> Command {
    let mut command = Command::new(program);
    command.args(["reference", options.architecture.name(), &format!("--{CONNECTION}"), "--store"]);
    command.arg(&options.store);
    if !options.scan {
        command.arg("--no-scan");
    }
    if !options.cache {
        command.arg("--no-cache");
    }
    command.stdin(OwnedFd::from(client)).stdout(Stdio::null());
    command
}

pub fn serve_connection(options: &Options) -> io::Result<()> {
    let proxy = Proxy::open(options)?;
    let client = io::stdin().as_fd().try_clone_to_owned()?;
    proxy.serve(TcpStream::from(client));
    Ok(())
}
