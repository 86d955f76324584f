extension Sequence {
  /// The first elements in an order, and whether there are more. Elements beyond the page aren't sorted.
  ///
  /// - Parameter limit: the most elements.
  func page(
    atMost limit: Int, by precedes: (Element, Element) -> Bool
  ) -> (page: [Element], more: Bool) {
    var page: [Element] = []
    /// The last element of the page when it was cut: later elements behind it aren't in the page.
    var bound: Element?
    var count = 0
    let most = Swift.max(limit, 0)
    for element in self {
      count += 1
      if let bound, !precedes(element, bound) { continue }
      if page.count >= 2 * most + 64 {
        page.sort(by: precedes)
        page.removeLast(page.count - most)
        bound = page.last
      }
      page.append(element)
    }
    page.sort(by: precedes)
    return (Array(page.prefix(most)), count > most)
  }
}
