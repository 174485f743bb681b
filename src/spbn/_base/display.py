"""How objects are shown, without the objects knowing it.

A network can be plotted, and a notebook shows it as HTML, but the packages that draw are above the models. So
a model asks here, ``display.html(self)``, and those packages register a function for its class when they are
imported. Nothing imports them until something is to be shown for the first time: then the loader does, which
the package `spbn` itself, above all others, has set.

    @display.html.register(BayesianNetwork)
    def network_html(network: BayesianNetwork) -> str: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

Shown = TypeVar("Shown")
Function = TypeVar("Function", bound=Callable[..., Any])


@final
class View(Generic[Shown]):
    """One way to show objects: a function for each class of them."""

    def __init__(self) -> None:
        self._functions: dict[type, Callable[..., Shown]] = {}
        self._load: Callable[[], object] | None = None

    def set_loader(self, load: Callable[[], object]) -> None:
        """Set what imports the modules that register functions: it is called before the first view."""
        self._load = load

    def register(self, *classes: type) -> Callable[[Function], Function]:
        """Show objects of some classes by the function that is decorated."""

        def decorate(function: Function) -> Function:
            self._functions.update(dict.fromkeys(classes, function))
            return function

        return decorate

    def __call__(self, shown: object, *args: Any, **options: Any) -> Shown:
        """Show an object by the function of its class, or of the nearest base class that has one."""
        if self._load is not None:
            self._load()
            self._load = None
        functions = (self._functions[kind] for kind in type(shown).__mro__ if kind in self._functions)
        function = next(functions, None)
        if function is None:
            raise TypeError(f"objects of {type(shown).__name__} have no such view")
        return function(shown, *args, **options)


#: What notebooks show.
html: View[str] = View()
#: The graph as an SVG picture.
svg: View[str] = View()
#: Axes or figures of matplotlib.
plot: View[Any] = View()
