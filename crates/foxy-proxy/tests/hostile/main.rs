//! What clients and origins can do to the proxy, over real sockets on loopback. One program, so that its parts share
//! the scripted origins and the raw client in `support`.

mod bodies;
mod clients;
mod faulty_disk;
mod flights;
mod http2;
mod http2_clients;
mod lost_parts;
mod origins;
mod stalled;
mod support;
mod upstream;
mod waits;
