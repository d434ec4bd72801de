//! Settings of the chapter "What may be relayed".

use super::super::kind::{Kind, Preset, Setting};
use foxy_base::{Cidr, HostPattern};
use std::path::PathBuf;

settings! {
    struct Access, written as WrittenAccess in access, chapter "What may be relayed";

    /// Networks whose clients may use foxy. foxy answers other clients with 403. By default foxy
    /// serves every client. But a forward proxy that listens beyond loopback starts only with this
    /// setting, `users-file`, `client-ca`, or rules that serve only named clients.
    allow_client: given Vec<Cidr> = "allow-client" flag "allow-client", Networks, Fixed();

    /// File with the users of a forward proxy. `foxy user` writes the file, which has hashes of
    /// passwords and tokens. With this file, foxy answers each request without the credentials of a
    /// user with 407, unless a rule has `login = false`. Clients send `Proxy-Authorization: Basic`
    /// or `Bearer`, in CONNECT for a tunnel. foxy does not start if every user of the machine may
    /// read the file. Passwords cross the network readably unless clients use `listen-tls`.
    users_file: optional PathBuf = "users-file" flag "users-file",
        File, Nothing("foxy asks for no credentials");

    /// Networks that foxy may connect to although they are loopback, link-local, private or
    /// otherwise not public. foxy may always connect to public addresses, except this machine's
    /// own. foxy compares the address to which it connects, not the host name. foxy does not
    /// recognise a public address that a router translates to this machine.
    allow_destination: given Vec<Cidr> = "allow-destination" flag "allow-destination",
        Networks, Fixed();

    /// File with the secret word that the admin server requires as `Authorization: Bearer WORD`,
    /// except for `/metrics` and `/healthz`. A client whose address is not in `purge-from` may send
    /// PURGE to the proxy with this word in `Proxy-Authorization` or `Authorization`. foxy reads
    /// the file at start-up, and does not start if every user may read it, or other users may
    /// change it (`chmod 600`).
    admin_token_file: optional PathBuf = "admin-token-file" flag "admin-token-file",
        File, Nothing("every client on this machine that can connect to `admin` may use `/purge` and `/explain`");

    /// Networks whose clients may send PURGE to the proxy without a token. Loopback is not
    /// included, because every client has a loopback address if another proxy on this machine is in
    /// front of foxy.
    purge_from: given Vec<Cidr> = "purge-from" flag "purge-from", Networks, Fixed();

    /// Ports to which clients may open CONNECT tunnels.
    connect_ports: given Vec<u16> = "connect-ports" flag "connect-port", Ports, Fixed("443");

    /// Folder of the certificate authority that signs certificates for `intercept-hosts`. `foxy ca
    /// init` creates the folder. foxy does not start if other users may read the private key. Nor
    /// does it start if the authority has expired or may not sign for a listed host.
    intercept_ca: optional PathBuf = "intercept-ca" flag "intercept-ca",
        Folder, Nothing("foxy tunnels every CONNECT");

    /// Hosts whose HTTPS responses foxy caches for clients that use CONNECT. `example.org` means
    /// this name and all names below it, `*.example.org` only the names below it, `192.0.2.0/24`
    /// these addresses. foxy decrypts the client's TLS with a certificate signed by `intercept-ca`.
    /// foxy opens a tunnel for a CONNECT to any other host, and for each CONNECT that arrives over
    /// `listen-tls` or HTTP/2.
    intercept_hosts: given Vec<HostPattern> = "intercept-hosts" flag "intercept-host",
        Hosts, Fixed();
}
