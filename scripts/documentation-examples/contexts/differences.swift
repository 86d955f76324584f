// BLOCK
precondition(feedback() == [1, 2, 3])
precondition(order() == ["first 1", "second 1", "first 2", "second 2"])
precondition(withoutDemand() == [["finished"], []])
precondition(empty().eager == [])
precondition(empty().general == [0])
