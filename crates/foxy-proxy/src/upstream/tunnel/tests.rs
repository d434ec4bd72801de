//! Tests tunnels with one-sided closes, bytes that were read before the tunnel opened, inactivity
//! and resets.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Returns the two ends of one TCP connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback listener");
    let one = TcpStream::connect(listener.local_addr().expect("its address"))
        .await
        .expect("a connection");
    (one, listener.accept().await.expect("its other end").0)
}

#[tokio::test]
async fn bytes_pass_both_ways_and_half_closes_with_them() {
    let (mut client, mut proxy_client) = pair().await;
    let (proxy_origin, mut origin) = pair().await;
    let tunnel = Tunnel {
        client: &mut proxy_client,
        from_client: Bytes::from_static(b"hello "),
        origin: proxy_origin,
        from_origin: Bytes::from_static(b"220 "),
    };
    let talk = async {
        client.write_all(b"world").await.expect("written");
        client.shutdown().await.expect("half closed");
        let mut heard = Vec::new();
        origin.read_to_end(&mut heard).await.expect("the half close arrives");
        origin.write_all(b"ready").await.expect("the other half is open");
        drop(origin);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("the answer");
        (heard, answer)
    };
    let (report, (heard, answer)) = tokio::join!(tunnel.run(Duration::from_secs(30)), talk);
    assert_eq!((&heard[..], &answer[..]), (&b"hello world"[..], &b"220 ready"[..]));
    assert_eq!(report, TunnelReport { to_origin: 11, to_client: 9, end: TunnelEnd::Closed });
}

#[tokio::test]
async fn a_megabyte_passes_whole() {
    let (mut client, mut proxy_client) = pair().await;
    let (proxy_origin, mut origin) = pair().await;
    let sent: Vec<u8> = (0..1_000_000u32).map(|index| (index % 251) as u8).collect();
    let tunnel = Tunnel {
        client: &mut proxy_client,
        from_client: Bytes::new(),
        origin: proxy_origin,
        from_origin: Bytes::new(),
    };
    let send = async {
        client.write_all(&sent).await.expect("written");
        client.shutdown().await.expect("half closed");
        client.read(&mut [0; 1]).await.expect("the end")
    };
    let receive = async {
        let mut heard = Vec::new();
        origin.read_to_end(&mut heard).await.expect("read");
        drop(origin);
        heard
    };
    let (report, _, heard) = tokio::join!(tunnel.run(Duration::from_secs(30)), send, receive);
    assert!(heard == sent);
    assert_eq!((report.to_origin, report.end), (1_000_000, TunnelEnd::Closed));
}

#[tokio::test]
async fn silence_ends_a_tunnel() {
    let (_client, mut proxy_client) = pair().await;
    let (proxy_origin, _origin) = pair().await;
    let tunnel = Tunnel {
        client: &mut proxy_client,
        from_client: Bytes::new(),
        origin: proxy_origin,
        from_origin: Bytes::new(),
    };
    let report = tunnel.run(Duration::from_millis(30)).await;
    assert_eq!(report, TunnelReport { to_origin: 0, to_client: 0, end: TunnelEnd::Idle });
}

#[tokio::test]
async fn a_reset_ends_a_tunnel() {
    let (_client, mut proxy_client) = pair().await;
    let (proxy_origin, origin) = pair().await;
    origin.set_zero_linger().expect("a reset at the close");
    drop(origin);
    let tunnel = Tunnel {
        client: &mut proxy_client,
        from_client: Bytes::new(),
        origin: proxy_origin,
        from_origin: Bytes::new(),
    };
    assert_eq!(tunnel.run(Duration::from_secs(30)).await.end, TunnelEnd::Reset);
}
