import SluiceTopics
import SluiceWire

/// What another node, on behalf of its client, has lent a subscription to a pattern at this one, and what that node is told of it. An object, since no client's
/// subscription has one.
final class NodeLoan {
  /// Of what was lent, the records that were given back.
  private var returned: UInt64 = 0
  /// As ``Lend/pacedThrough``.
  private var pacedThrough: UInt64 = 0
  /// The other node knows that records wait.
  private var hasOffered = false
  /// The other node wants back what isn't used in this turn.
  private(set) var isRecalled = false
  /// The other node is to know that there are topics whose producers follow their subscribers.
  private(set) var isPaced = false
  /// The shards that this node served when the subscription began.
  let shards: ServedShards
  /// Topics of which the other node has sent positions, and that aren't there any more, with numbers for them.
  private var absent = ReadyQueue<(number: UInt32, name: String)>()

  init(shards: ServedShards) {
    self.shards = shards
  }

  /// The demand that producers follow: that of the client as a whole.
  func pacingDemand(spent: UInt64) -> Credit { Credit(granted: pacedThrough, spent: spent) }

  /// Takes what the other node says, which may raise the subscription's credit.
  func take(_ frame: Lend, raising credit: inout Credit) {
    if credit.raise(to: frame.grantedThrough) { hasOffered = false }
    pacedThrough = frame.pacedThrough
    // What waits is sent first: a loan that is given back unused, although there are records, would go from node to node for ever.
    if frame.recalls { isRecalled = true }
  }

  /// The producers of a topic are paced. Returns what the other node is to be told; nil where it knows.
  func paced() -> Offer? {
    guard !isPaced else { return nil }
    isPaced = true
    return offer(waits: hasOffered)
  }

  /// How the loan stands.
  func offer(waits: Bool) -> Offer { Offer(returned: returned, waits: waits, isPaced: isPaced) }

  /// Records wait, and there is no demand for them. Returns what the other node is to be told; nil where it knows.
  func exhausted() -> Offer? {
    guard !hasOffered else { return nil }
    hasOffered = true
    return offer(waits: true)
  }

  /// Gives back what is left of the loan. Returns what the other node is to be told.
  ///
  /// - Parameter waits: whether records wait.
  func giveBack(_ credit: inout Credit, waits: Bool) -> Offer {
    let rest = credit.granted == Credit.unlimited ? 0 : credit.available
    _ = credit.spend(rest)
    returned += rest
    isRecalled = false
    hasOffered = waits
    return offer(waits: waits)
  }

  /// A topic isn't there any more of which the other node has sent a position.
  func isAbsent(_ name: String, as number: UInt32) { absent.append((number, name)) }

  /// Tells which topics aren't there. Returns whether there was room.
  func tellAbsent(_ writes: WriteBatch, stream: UInt32) -> Bool {
    while writes.hasRoom, let topic = absent.popFirst() {
      let nowhere = Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0)
      writes.append(Matched(number: topic.number, topic: topic.name, place: nowhere), stream: stream)
    }
    return absent.isEmpty
  }
}
