"""The experiments of the paper, one command each: ``python -m experiments NAME --data DIR``.

An experiment is a module with

=============================  ==================================================================
``Cell``                       frozen dataclass of plain fields that identify one measurement
``cells(data, quick)``         all of them, in the order in which to run them
``run(cell, data)``            what was measured, a dict of plain values
``render(results, data, out)`` tables (``.md``) and figures into a folder, from the results alone
``batch(cell)``                optional: cells with the same key run one after the other in one process,
                               so that they can share what is expensive
=============================  ==================================================================

`runner` runs the cells and keeps the results, and `page` puts tables into the documentation.
"""
