//! What origins can do to the proxy, over real sockets on loopback. One program, so that its parts share the
//! scripted origins in `support`.

mod support;
mod upstream;
