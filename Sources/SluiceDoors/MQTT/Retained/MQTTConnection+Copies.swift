import SluiceIO
import SluiceMQTT
import SluiceWire

// The retained copies of the client's messages. Where they outlive the process, a message at QoS 1 or 2 is acknowledged when its copy is kept, too; the client is
// told of the message itself where the copy fails.
extension MQTTConnection {
  /// The token of a message's copy.
  func token(ofCopy packetID: UInt16) -> MQTTToken {
    guard packetID != 0, hub.keepsRetained else { return MQTTToken() }
    madePublishing().copies.updateValue(nil, forKey: packetID)
    return MQTTToken(packetID: packetID)
  }

  /// Whether a message that is in its topic's log waits for its copy.
  func awaitsCopy(_ token: MQTTToken, _ error: MQTTError?) -> Bool {
    guard let publishing, !publishing.copies.isEmpty, publishing.copies[token.packetID] != nil else {
      return false
    }
    guard error == nil else {
      publishing.copies[token.packetID] = nil
      return false
    }
    publishing.copies.updateValue(token, forKey: token.packetID)
    return true
  }

  /// Copies are in the topic of retained messages, up to that offset.
  func awaitCopies(_ tokens: [MQTTToken], at offset: UInt64) {
    let packetIDs = tokens.map(\.packetID)
    guard !packetIDs.isEmpty else { return }
    guard let retained = hub.retained else {
      // In a cluster the topic itself is durable.
      later.append(.copied(packetIDs))
      return runLater()
    }
    let loop = loop
    retained.loop.execute {
      retained.whenKept(offset) {
        loop.execute { [weak self] in
          guard let self, phase == .open else { return }
          later.append(.copied(packetIDs))
          runLater()
          endTurn()
        }
      }
    }
  }

  /// Copies are kept, or can't be.
  func copied(_ packetIDs: [UInt16]) {
    for packetID in packetIDs {
      guard let token = publishing?.copies.removeValue(forKey: packetID) ?? nil else { continue }
      later.append(.done([token]))
    }
  }
}
