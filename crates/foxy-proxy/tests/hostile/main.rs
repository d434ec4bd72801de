//! What clients and origins can do to the proxy, over real sockets on loopback. One program, so that its parts share
//! the scripted origins and the raw client in `support`.

mod clients;
mod flights;
mod origins;
mod support;
mod upstream;
mod waits;
