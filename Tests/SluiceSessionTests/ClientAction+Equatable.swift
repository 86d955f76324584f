import SluiceWire

@testable import SluiceSession

extension ClientAction: Equatable {
  /// Batches are compared by their bytes.
  public static func == (left: ClientAction, right: ClientAction) -> Bool {
    switch (left, right) {
    case (.none, .none), (.cancelled, .cancelled): true
    case (.deliver(let a, let b, let c), .deliver(let x, let y, let z)):
      a == x && b == y && c.elementsEqual(z)
    case (.subscribed(let a, let b), .subscribed(let x, let y)): a == x && b == y
    case (.live(let a, let b), .live(let x, let y)): a == x && b == y
    case (.lagged(let a, let b), .lagged(let x, let y)): a == x && b == y
    case (.matched(let a, let b), .matched(let x, let y)): a == x && b == y
    case (.unmatched(let a, let b), .unmatched(let x, let y)): a == x && b == y
    case (.selectedTopic(let a, let b), .selectedTopic(let x, let y)): a == x && b == y
    case (.topicEnded(let a, let b), .topicEnded(let x, let y)): a == x && b == y
    case (.deliveries(let a, let b), .deliveries(let x, let y)): a == x && b == y
    case (.publicationOpened(let a, let b), .publicationOpened(let x, let y)): a == x && b == y
    case (.granted(let a), .granted(let x)): a == x
    case (.acknowledged(let a, let b), .acknowledged(let x, let y)): a == x && b == y
    case (.connection(let a, let b), .connection(let x, let y)): a == x && b == y
    case (.completed(let a, let b), .completed(let x, let y)): a == x && b == y
    case (.producers(let a, let b), .producers(let x, let y)): a == x && b == y
    case (.ended(let a, let b), .ended(let x, let y)): a == x && b == y
    case (.refused(let a, let b), .refused(let x, let y)): a == x && b == y
    case (.redirected(let a, let b), .redirected(let x, let y)): a == x && b == y
    case (.topicInfo(let a, let b), .topicInfo(let x, let y)): a == x && b == y
    case (.topics(let a, let b), .topics(let x, let y)): a == x && b == y
    case (.cursors(let a, let b), .cursors(let x, let y)): a == x && b == y
    case (.states(let a, let b), .states(let x, let y)): a == x && b == y
    case (.connections(let a, let b), .connections(let x, let y)): a == x && b == y
    case (.brokerInfo(let a, let b), .brokerInfo(let x, let y)): a == x && b == y
    case (.clusterInfo(let a, let b), .clusterInfo(let x, let y)): a == x && b == y
    case (.done(let a), .done(let x)): a == x
    case (.opened(let a), .opened(let x)): a == x
    case (.answerPing(let a), .answerPing(let x)): a == x
    case (.pong(let a), .pong(let x)): a == x
    case (.goAway(let a), .goAway(let x)): a == x
    case (.failed(let a), .failed(let x)): a == x
    default: false
    }
  }
}
