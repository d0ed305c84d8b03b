//! Connections of a service. Their number is limited, and so are the length and time of request
//! heads and the age of a connection.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::places::{ConnectionPhase, ConnectionSlot};
use crate::{Front, gate};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};

/// Accepts connections until the service is stopped. Then waits for the connections with a request
/// in flight.
pub(crate) async fn accept(listener: TcpListener, front: Arc<Front>, router: axum::Router) -> Result<()> {
    let failed = |cause| Error::storage("connections", cause);
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    loop {
        let stream = tokio::select! {
            () = front.stopped() => break,
            accepted = listener.accept() => accepted,
        };
        match stream {
            Ok((stream, peer)) => {
                let place = loop {
                    if let Some(place) = front.places.take(peer.ip()) {
                        break place;
                    }
                    // All places are held by requests in progress. New connections wait in the
                    // queue of the system.
                    tokio::select! {
                        () = front.stopped() => return wait_for_end(&front).await,
                        () = front.places.freed() => {}
                    }
                };
                tokio::spawn(connection(stream, place, Arc::clone(&front), router.clone()));
            }
            Err(cause) => {
                // The cause may be too many open files, which ends when other connections close.
                notify(format_args!(
                    "warning: a connection could not be accepted, and the server tries again: {cause}"
                ));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    wait_for_end(&front).await
}

/// Waits for the connections, which stop together with the service. Waits at most for the time
/// limit of a request.
async fn wait_for_end(front: &Front) -> Result<()> {
    let _ = timeout(front.settings.limits.request, front.places.all_free()).await;
    Ok(())
}

/// Answers the requests of a connection until either side closes it, it is displaced or too old, or
/// the service is stopped.
async fn connection(stream: TcpStream, place: Arc<ConnectionSlot>, front: Arc<Front>, router: axum::Router) {
    let limits = front.settings.limits;
    let _ = stream.set_nodelay(true);
    let service_place = Arc::clone(&place);
    let request_front = Arc::clone(&front);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (front, router, place) = (Arc::clone(&request_front), router.clone(), Arc::clone(&service_place));
        async move {
            place.waits_for(ConnectionPhase::Answer);
            let request = request.map(|incoming| Body::new(Coming { incoming, place: Arc::clone(&place) }));
            let answer = gate::answer(&front, &place, router, request).await;
            place.waits_for(ConnectionPhase::Idle);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.idle + limits.head_time)
        .max_buf_size(limits.head.max(8 << 10));
    let stream = Heard { stream, place: Arc::clone(&place) };
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.is_over() => return,
        () = sleep(limits.connection) => {}
        () = front.stopped() => {}
    };
    connection.as_mut().graceful_shutdown();
    // A client that does not read its response does not delay the shutdown.
    let _ = timeout(limits.request, connection).await;
}

/// Stream that notifies its place when bytes arrive.
struct Heard {
    stream: TcpStream,
    place: Arc<ConnectionSlot>,
}

impl AsyncRead for Heard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length_before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > length_before {
            self.place.hears();
        }
        read
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

/// Body that notifies its place when the server waits for the client.
struct Coming {
    incoming: Incoming,
    place: Arc<ConnectionSlot>,
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(cx);
        if frame.is_pending() {
            self.place.waits_for(ConnectionPhase::Body);
        } else if self.incoming.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.place.waits_for(ConnectionPhase::Answer);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
