import SluiceHTTP
import SluiceIO
import SluiceWebSocket

/// The opening handshake of a client: takes bytes of its request, and returns the answer.
struct WebSocketOpening {
  enum Outcome {
    /// The connection is a WebSocket once the answer is sent. `early` contains bytes of messages that came with the request.
    case agreed(WebSocketUpgrade.Agreement, early: [UInt8])
    /// The connection ends after the answer.
    case refused(WebSocketUpgrade.Refusal)
  }

  let door: WebSocketDoor
  private var head = HTTPHeadReader()

  init(_ door: WebSocketDoor) {
    self.door = door
  }

  var heldBytes: Int { head.heldBytes }

  /// Takes bytes of the request. Nil while it isn't complete.
  mutating func take(_ bytes: UnsafeRawBufferPointer) -> Outcome? {
    do throws(HTTPRequestHead.Fault) {
      guard let (request, taken) = try unsafe head.take(bytes) else { return nil }
      head = HTTPHeadReader()
      do throws(WebSocketUpgrade.Refusal) {
        return try .agreed(door.upgrade.answer(request), early: unsafe Array(bytes[taken...]))
      } catch {
        return .refused(error)
      }
    } catch {
      return .refused(WebSocketUpgrade.Refusal(error))
    }
  }
}
