//! Tests which bytes `FrameGatherer` sends, and when, over a TCP connection.

use super::*;
use crate::core::frames::{flag, kind};
use foxy_testkit::http2::frame;
use std::future::poll_fn;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// Returns both ends of a TCP connection: of the proxy and of its client.
async fn pair() -> (Transport, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let client = TcpStream::connect(listener.local_addr().expect("its address")).await;
    let (proxy, _) = listener.accept().await.expect("a connection");
    (Transport::Plain(proxy), client.expect("connected"))
}

/// Writes all `bytes` to the connection, and flushes, as the HTTP/2 library does for each frame.
fn write_frame(io: &mut WatchedIo<'_>, bytes: &[u8]) {
    let context = &mut Context::from_waker(std::task::Waker::noop());
    let Poll::Ready(Ok(taken)) = Pin::new(&mut *io).poll_write(context, bytes) else {
        panic!("no room for a frame");
    };
    assert_eq!(taken, bytes.len());
    assert!(Pin::new(io).poll_flush(context).is_ready());
}

#[tokio::test]
async fn the_frames_of_a_turn_leave_together_and_in_order() {
    let (mut stream, mut client) = pair().await;
    let (wire, stalled) = (Rc::new(Wire::new(Instant::now())), Stalled::default());
    let gatherer = FrameGatherer::new(&mut stream, Rc::clone(&stalled), Rc::clone(&wire));
    let gatherer = Rc::new(RefCell::new(gatherer));
    let mut buffer = BytesMut::new();
    let mut io = WatchedIo::new(Rc::clone(&gatherer), &mut buffer, Rc::clone(&wire));
    let settings = frame(4, 0, 0, &[]);
    write_frame(&mut io, &settings);
    let mut received = vec![0; settings.len()];
    client.read_exact(&mut received).await.expect("sent before the first turn");

    gatherer.borrow_mut().ignore_flush();
    let mut turn = Vec::new();
    for stream in [1, 3, 5] {
        wire.handed_data(stream, 1000);
        let data = frame(kind::DATA, flag::END_STREAM, stream, &[stream as u8; 1000]);
        write_frame(&mut io, &data);
        turn.extend(data);
    }
    assert!(gatherer.borrow().gathered[..] == turn, "nothing has left");
    poll_fn(|context| gatherer.borrow_mut().poll_send(context)).await.expect("sent");
    let mut received = vec![0; turn.len()];
    client.read_exact(&mut received).await.expect("received");
    assert!(received == turn, "other bytes");
    assert_eq!(gatherer.borrow().gathered.capacity(), 0, "an idle connection has no buffer");
    let context = Context::from_waker(std::task::Waker::noop());
    assert_eq!(wire.poll_room(&context), Poll::Ready(MAX_UNSENT_BYTES));
}

#[tokio::test]
async fn a_client_that_reads_nothing_bounds_the_gathered_bytes() {
    let (mut stream, mut client) = pair().await;
    let (wire, stalled) = (Rc::new(Wire::new(Instant::now())), Stalled::default());
    let mut gatherer = FrameGatherer::new(&mut stream, Rc::clone(&stalled), wire);
    gatherer.ignore_flush();
    let piece: Vec<u8> = (0..10_007_u32).map(|at| (at % 251) as u8).collect();
    let mut total = 0;
    let context = &mut Context::from_waker(std::task::Waker::noop());
    loop {
        let slices = [&piece[total % piece.len()..], &piece].map(IoSlice::new);
        let Poll::Ready(taken) = gatherer.poll_gather(context, &slices) else { break };
        total += taken.expect("the connection lives");
        assert!(gatherer.gathered.capacity() <= MAX_GATHERED);
    }
    assert!(gatherer.poll_send(context).is_pending() && stalled.get().is_some());
    let mut received = vec![0; total];
    let (read, sent) = tokio::join!(
        client.read_exact(&mut received),
        poll_fn(|context| gatherer.poll_send(context))
    );
    assert!(read.is_ok() && sent.is_ok() && stalled.get().is_none());
    let expected = piece.iter().cycle().take(total);
    assert!(received.iter().eq(expected), "other bytes than gathered");
}
