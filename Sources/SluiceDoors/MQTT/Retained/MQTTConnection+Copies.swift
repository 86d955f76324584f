import SluiceIO
import SluiceMQTT
import SluiceWire

// Stores the retained copies of the client's messages. If they outlive the process, a message at QoS 1 or 2 is acknowledged once its copy is stored, too. If
// the copy fails, the client gets the answer of the message itself.
extension MQTTConnection {
  /// The token of a message's copy.
  func token(ofCopy packetID: UInt16) -> MQTTToken {
    guard packetID != 0, hub.isDurable else { return MQTTToken() }
    madePublishing().copies.updateValue(nil, forKey: packetID)
    return MQTTToken(packetID: packetID)
  }

  /// Returns whether a message that is in its topic's log waits for its copy.
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

  /// Copies are stored, or can't be.
  func copied(_ packetIDs: [UInt16]) {
    for packetID in packetIDs {
      guard let token = publishing?.copies.removeValue(forKey: packetID) ?? nil else { continue }
      later.append(.done([token]))
    }
  }
}
