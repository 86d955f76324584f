import SluiceTopics
import SluiceWire

/// Demand that another node has lent to a subscription to a pattern at this node, on behalf of a client of that node, and the state that this node reports
/// in OFFER. An object of its own, since subscriptions of this node's clients don't have one.
final class NodeLoan {
  /// The number of lent records that were returned.
  private var returned: UInt64 = 0
  /// The value of ``Lend/pacedThrough``.
  private var pacedThrough: UInt64 = 0
  /// Whether the other node was notified that records wait.
  private var hasOffered = false
  /// Whether the other node has recalled the demand that isn't used in this turn.
  private(set) var isRecalled = false
  /// Whether there are topics with paced producers, which the other node has to know.
  private(set) var isPaced = false
  /// The shards that this node served when the subscription began.
  let shards: ServedShards
  /// Topics that no longer exist and of which the other node has sent positions, with numbers for them.
  private var absent = ReadyQueue<(number: UInt32, name: String)>()

  init(shards: ServedShards) {
    self.shards = shards
  }

  /// The demand that paces producers: that of the client as a whole.
  func pacingDemand(spent: UInt64) -> Credit { Credit(granted: pacedThrough, spent: spent) }

  /// Applies a LEND of the other node, which may raise the subscription's credit.
  func take(_ frame: Lend, raising credit: inout Credit) {
    if credit.raise(to: frame.grantedThrough) { hasOffered = false }
    pacedThrough = frame.pacedThrough
    // Waiting records are sent first. A loan that is returned unused although there are records would move from node to node for ever.
    if frame.recalls { isRecalled = true }
  }

  /// Notes that the producers of a topic are paced. Returns the frame to send; nil if the other node was notified before.
  func paced() -> Offer? {
    guard !isPaced else { return nil }
    isPaced = true
    return offer(waits: hasOffered)
  }

  /// Returns the frame that describes the loan.
  func offer(waits: Bool) -> Offer { Offer(returned: returned, waits: waits, isPaced: isPaced) }

  /// Notes that records wait for demand. Returns the frame to send; nil if the other node was notified before.
  func exhausted() -> Offer? {
    guard !hasOffered else { return nil }
    hasOffered = true
    return offer(waits: true)
  }

  /// Gives the rest of the loan back to the other node. Returns the frame to send.
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

  /// Notes a topic that no longer exists and of which the other node has sent a position.
  func isAbsent(_ name: String, as number: UInt32) { absent.append((number, name)) }

  /// Sends the topics that no longer exist. Returns whether all of them fit.
  func tellAbsent(_ writes: WriteBatch, stream: UInt32) -> Bool {
    while writes.hasRoom, let topic = absent.popFirst() {
      let nowhere = Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0)
      writes.append(Matched(number: topic.number, topic: topic.name, place: nowhere), stream: stream)
    }
    return absent.isEmpty
  }
}
