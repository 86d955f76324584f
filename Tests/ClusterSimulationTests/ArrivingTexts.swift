import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation

/// Receives the texts of a topic's records, with the times of arrival. Unchecked: a world is used by one thread.
final class ArrivingTexts: @unchecked Sendable {
  private(set) var texts: [String] = []
  private var times: [MonotonicTime] = []
  private let world: SimulatedWorld
  private var subscription: AnyCancellable?

  init(of topic: RemoteTopic<TopicRecord>, in world: SimulatedWorld) {
    self.world = world
    subscription = topic.sink { _ in
    } receiveValue: { [unowned self] record in
      texts.append(record.string)
      times.append(self.world.now)
    }
  }

  /// The longest time between two of them.
  var longestPause: Duration { zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .zero }
}
