//! Tests hostile clients and hostile origins over real sockets on loopback. All these tests are one
//! program, so that they share the scripted origins and the raw client in `support`.

mod bodies;
mod clients;
mod crowded;
mod faulty_disk;
mod flights;
mod http2;
mod http2_clients;
mod http2_manners;
mod late;
mod lost_parts;
mod origin_http2;
mod origin_http2_connections;
mod origin_http2_hostile;
mod origin_http2_proxied;
mod origins;
mod stalled;
mod support;
mod upstream;
mod upstream_bodies;
mod waits;
